//! The table of a page: one row per sentence that asks for something, and the tests that show it.

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its number, such as `B12`.
    pub(super) number: String,
    /// What shows that it holds.
    pub(super) proof: Proof,
}

/// The last cell of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The names of tests.
    Tests(Vec<String>),
    /// It needs a service on a network, which isn't part of the command.
    Server,
    /// Nothing yet.
    Open,
    /// The cell is empty or isn't a list of names in backticks.
    Unreadable(String),
}

/// The rows of a page, and what is wrong with their form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    pub(super) mistakes: Vec<String>,
}

/// Reads every table of a page whose first column is `#`; the numbers are `letter` and 1, 2, 3, … over all of them.
pub(super) fn read(text: &str, letter: char) -> Page {
    let mut page = Page::default();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if cells(line).is_none_or(|cells| cells[0] != "#") {
            continue;
        }
        for (at, line) in lines.by_ref().skip(1) {
            let Some(cells) = cells(line) else { break };
            page.add(at + 1, &cells, letter);
        }
    }
    if page.rows.is_empty() {
        page.mistakes.push("there is no table whose first column is `#`".to_owned());
    }
    page
}

impl Page {
    fn add(&mut self, line: usize, cells: &[String], letter: char) {
        let expected = format!("{letter}{}", self.rows.len() + 1);
        let [number, asks, does, tests] = cells else {
            self.mistakes.push(format!("line {line}: a row has 4 cells, this one {}", cells.len()));
            self.rows.push(Row { number: expected, proof: Proof::Tests(Vec::new()) });
            return;
        };
        if *number != expected {
            self.mistakes.push(format!("line {line}: the row is numbered {number:?}, not {expected}"));
        }
        if asks.is_empty() || does.is_empty() {
            self.mistakes.push(format!("{expected}: a cell is empty"));
        }
        self.rows.push(Row { number: expected, proof: proof(tests) });
    }
}

/// Returns the cells of a line of a table; a `|` behind a backslash is text.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        let cell = cells.last_mut()?;
        match character {
            '\\' if characters.peek() == Some(&'|') => cell.extend(characters.next()),
            '|' => cells.push(String::new()),
            other => cell.push(other),
        }
    }
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

fn proof(cell: &str) -> Proof {
    match cell.trim_matches('`') {
        "server" => return Proof::Server,
        "open" => return Proof::Open,
        _ => {}
    }
    let name = |part: &str| {
        let name = part.trim().strip_prefix('`')?.strip_suffix('`')?;
        (!name.is_empty() && !name.contains(['`', ' '])).then(|| name.to_owned())
    };
    let names: Option<Vec<String>> = cell.split(',').map(name).collect();
    names.map_or_else(|| Proof::Unreadable(cell.to_owned()), Proof::Tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# Title\n\n| other | table |\n|---|---|\n| x | y |\n\n| # | asks | does | tests |\n|---|---|---|---|\n";

    fn page(rows: &str) -> Page {
        read(&format!("{HEAD}{rows}\nMore text.\n"), 'B')
    }

    #[test]
    fn rows_are_read_with_their_proof() {
        let page = page(
            "| B1 | \"a \\| b\" | c | `it::a::b`, `vector::x/y` |\n| B2 | a | b | server |\n| B3 | a | b | `open` |\n",
        );
        assert_eq!(page.mistakes, [""; 0]);
        let proofs: Vec<Proof> = page.rows.into_iter().map(|row| row.proof).collect();
        let tests = Proof::Tests(vec!["it::a::b".to_owned(), "vector::x/y".to_owned()]);
        assert_eq!(proofs, [tests, Proof::Server, Proof::Open]);
    }

    #[test]
    fn a_row_without_a_test_is_unreadable() {
        for cell in ["", "yes", "`it::a` and `it::b`", "``", "`it::a`,", "server, `it::a`"] {
            let page = page(&format!("| B1 | a | b | {cell} |\n"));
            assert_eq!(page.rows[0].proof, Proof::Unreadable(cell.to_owned()), "{cell}");
        }
    }

    #[test]
    fn numbers_have_no_gaps() {
        let wrong = |rows: &str| page(rows).mistakes.len();
        assert_eq!(wrong("| B1 | a | b | open |\n| B3 | a | b | open |\n"), 1);
        assert_eq!(wrong("| B1 | a | b | open |\n| B1 | a | b | open |\n"), 1);
        assert_eq!(wrong("| S1 | a | b | open |\n"), 1);
        assert_eq!(wrong("| B1 | a | open |\n"), 1);
        assert_eq!(wrong("| B1 | | b | open |\n"), 1);
        assert_eq!(read("# Title\n", 'B').mistakes.len(), 1);
    }
}
