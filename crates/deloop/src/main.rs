//! The command `deloop`.

/// A server and a scan allocate much, and this takes a third of the time of glibc's and a tenth of that of musl's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    deloop_cli::main()
}
