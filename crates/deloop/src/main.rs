//! The command `deloop`.

/// A server and a scan allocate much; glibc's allocator took a tenth of a server's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    deloop_cli::main()
}
