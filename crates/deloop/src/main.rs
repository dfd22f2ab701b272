//! The command `deloop`.

fn main() -> std::process::ExitCode {
    deloop_cli::main()
}
