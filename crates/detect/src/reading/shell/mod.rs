//! Shell commands, as far as a loop detector needs them: words, operators and simple commands.
//!
//! One pass over the bytes, no recursion, no backtracking: hostile input cannot make it slow. What it does not
//! understand it keeps as a word.

mod lexer;
mod script;

pub use lexer::{Token, lex};
pub(crate) use script::program_name;
pub use script::{Script, SimpleCommand};
