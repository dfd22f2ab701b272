//! Parses shell commands as far as a loop detector needs them: words, operators and simple commands.
//!
//! Makes one pass over the bytes, with no recursion or backtracking, so hostile input can't make it slow. Anything it
//! doesn't understand is kept as a word.

mod lexer;
mod script;

pub use lexer::{Token, lex};
pub(crate) use script::program_name;
pub use script::{Script, SimpleCommand};
