//! The command `deloop`.

#[cfg(feature = "serve")]
mod allocator;

#[cfg(feature = "serve")]
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> std::process::ExitCode {
    deloop_cli::main()
}
