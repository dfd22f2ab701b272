use serde::{Deserialize, Serialize};

/// Maximum number of tool names stored.
const TOOLS: usize = 24;
/// Maximum length of a stored tool name, in characters.
const NAME: usize = 64;

/// A tool of a session and its tallies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTally {
    /// The tool's name.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of failures.
    pub failures: u64,
}

/// Counts a call of a tool. Returns the tool's index.
pub(super) fn count(tools: &mut Vec<ToolTally>, tool: &str) -> u8 {
    let tool = tool.char_indices().nth(NAME).map_or(tool, |(end, _)| &tool[..end]);
    let known = tools.iter().position(|t| t.name == tool);
    let index = known.unwrap_or_else(|| {
        let fresh = ToolTally { name: tool.to_owned(), calls: 0, failures: 0 };
        if tools.len() < TOOLS {
            // Most sessions use few tools, so room is made for one at a time.
            tools.reserve_exact(1);
            tools.push(fresh);
            tools.len() - 1
        } else {
            let rarest = (0..tools.len()).min_by_key(|i| tools[*i].calls).unwrap_or(0);
            tools[rarest] = fresh;
            rarest
        }
    });
    tools[index].calls += 1;
    u8::try_from(index).unwrap_or(u8::MAX)
}
