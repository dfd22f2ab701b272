//! Makes JSON that a parser accepts and that holds no more than [`deloop_types::limits`] allow, in one pass over the
//! bytes and without recursion.

use deloop_types::limits;

use super::excerpt::{TextEncoding, write_excerpt};
use super::repair::write_word;
use super::scan::{after_nested, string_length};

/// Returns the JSON value of `bytes`, well-formed and within the limits; `None` when it has no end or is followed by
/// more.
pub(super) fn truncate(bytes: &[u8]) -> Option<Vec<u8>> {
    let room = bytes.len().min(limits::RECORD);
    let mut truncator =
        Truncator { input: bytes, at: 0, out: Vec::with_capacity(room), open: Vec::new(), nodes: 0 };
    truncator.run().then_some(truncator.out)
}

/// The lists whose items are records of their own.
const LISTS: [&[u8]; 2] = [b"calls", b"tool_calls"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum LevelKind {
    /// The event, or one call of a turn: fields that don't fit are left out.
    Record,
    /// The calls of a turn: those that don't fit are left out.
    List,
    /// Anything else, so many levels below its record: it becomes text when it is too large.
    Tree(usize),
}

/// An object or list that is open.
struct OpenLevel {
    kind: LevelKind,
    object: bool,
    /// Where it begins, in what is read and in what is written.
    from: usize,
    out: usize,
    /// Values before it.
    nodes: usize,
    /// What is written and counted up to the end of its last whole item.
    whole: (usize, usize),
    items: usize,
    /// A key comes next.
    key_next: bool,
    /// Its current key is one of [`LISTS`].
    list_next: bool,
    /// The least that any open tree allows: bytes written, values counted.
    most: (usize, usize),
}

struct Truncator<'a> {
    input: &'a [u8],
    at: usize,
    out: Vec<u8>,
    open: Vec<OpenLevel>,
    nodes: usize,
}

impl Truncator<'_> {
    /// Returns whether it is one whole value.
    fn run(&mut self) -> bool {
        while let Some(&byte) = self.input.get(self.at) {
            let whole = match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.blank();
                    continue;
                }
                b'"' => self.string(),
                b'{' | b'[' => self.begin(byte == b'{'),
                b'}' | b']' => self.end(byte == b'}'),
                b',' => {
                    self.comma();
                    Some(false)
                }
                b':' => {
                    self.out.push(byte);
                    self.at += 1;
                    Some(false)
                }
                _ => {
                    self.word();
                    Some(true)
                }
            };
            match whole {
                None => return false,
                Some(true) if !self.after_value() => return false,
                _ => {}
            }
            if self.open.is_empty() {
                return self.input.get(self.at..).unwrap_or_default().trim_ascii().is_empty();
            }
        }
        false
    }

    /// A run of blanks is one: without any, two words would become one.
    fn blank(&mut self) {
        let rest = &self.input[self.at..];
        self.at += rest.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len());
        if self.out.last().is_some_and(u8::is_ascii_alphanumeric) {
            self.out.push(b' ');
        }
    }

    /// A number, `true`, `false`, `null`, or what is none of them.
    fn word(&mut self) {
        let rest = &self.input[self.at..];
        let ends =
            |b: &u8| matches!(b, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"') || b.is_ascii_whitespace();
        // At least one byte: a form feed ends a word but isn't JSON whitespace.
        let length = rest.iter().position(ends).unwrap_or(rest.len()).max(1);
        write_word(&rest[..length], limits::NUMBER, &mut self.out);
        self.at += length;
        self.nodes += 1;
    }

    /// A key or a value; whether it is a value, `None` when it has no end.
    fn string(&mut self) -> Option<bool> {
        let inner = &self.input[self.at + 1..];
        let text = &inner[..string_length(inner)?];
        self.at += text.len() + 2;
        let is_key = self.open.last().is_some_and(|open| open.key_next);
        self.out.push(b'"');
        write_excerpt(
            text,
            if is_key { limits::KEY } else { limits::TEXT },
            TextEncoding::Escaped,
            &mut self.out,
        );
        self.out.push(b'"');
        let at_root = self.open.len() == 1;
        match self.open.last_mut().filter(|_| is_key) {
            Some(open) => {
                open.key_next = false;
                open.list_next = at_root && LISTS.contains(&text);
                Some(false)
            }
            None => {
                self.nodes += 1;
                Some(true)
            }
        }
    }

    /// An object or list begins; whether it is over already, `None` when it has no end.
    fn begin(&mut self, object: bool) -> Option<bool> {
        if self.open.len() >= limits::DEPTH {
            let (from, out) = (self.at, self.out.len());
            return self.as_text(from, out, self.nodes, 0);
        }
        let kind = match self.open.last() {
            None if object => LevelKind::Record,
            None => LevelKind::Tree(0),
            Some(OpenLevel { kind: LevelKind::Record, list_next: true, .. }) if !object => LevelKind::List,
            Some(OpenLevel { kind: LevelKind::List, .. }) if object => LevelKind::Record,
            Some(OpenLevel { kind: LevelKind::Record | LevelKind::List, .. }) => LevelKind::Tree(0),
            Some(OpenLevel { kind: LevelKind::Tree(level), .. }) => LevelKind::Tree(level + 1),
        };
        let outer = self.open.last().map_or((usize::MAX, usize::MAX), |open| open.most);
        let most = match kind {
            LevelKind::Tree(level) => {
                let (bytes, nodes) = tree(level);
                (outer.0.min(self.out.len() + bytes), outer.1.min(self.nodes + nodes))
            }
            _ => outer,
        };
        self.open.push(OpenLevel {
            kind,
            object,
            from: self.at,
            out: self.out.len(),
            nodes: self.nodes,
            whole: (self.out.len() + 1, self.nodes + 1),
            items: 0,
            key_next: object,
            list_next: false,
            most,
        });
        self.out.push(if object { b'{' } else { b'[' });
        self.at += 1;
        self.nodes += 1;
        Some(false)
    }

    /// An object or list ends; `None` when it is not the one that is open.
    fn end(&mut self, object: bool) -> Option<bool> {
        self.open.pop().filter(|open| open.object == object)?;
        self.out.push(if object { b'}' } else { b']' });
        self.at += 1;
        Some(true)
    }

    /// A comma, unless all that came before it was left out.
    fn comma(&mut self) {
        self.at += 1;
        let Some(open) = self.open.last_mut() else { return self.out.push(b',') };
        open.key_next = open.object;
        if open.items == 0 || self.out.len() > open.out + 1 {
            self.out.push(b',');
        }
    }

    /// Writes what began at `from` as a text; it is open for `depth` levels. `None` when it has no end.
    fn as_text(&mut self, from: usize, out: usize, nodes: usize, depth: usize) -> Option<bool> {
        self.at = self.input.len() - after_nested(&self.input[self.at..], depth)?.len();
        self.out.truncate(out);
        self.out.push(b'"');
        write_excerpt(&self.input[from..self.at], limits::TREE_TEXT, TextEncoding::Raw, &mut self.out);
        self.out.push(b'"');
        self.nodes = nodes + 1;
        Some(true)
    }

    /// A value is whole: drops it or makes a text of what is too large. `false` when the text has no end.
    fn after_value(&mut self) -> bool {
        loop {
            let (bytes, nodes) = (self.out.len(), self.nodes);
            let Some(open) = self.open.last_mut() else { return true };
            if bytes <= open.most.0 && nodes <= open.most.1 {
                self.count_item();
                return true;
            }
            // The innermost of those that are too large: what is around it stays a tree.
            let too_large = |open: &OpenLevel| match open.kind {
                LevelKind::Tree(level) => {
                    let most = tree(level);
                    bytes > open.out + most.0 || nodes > open.nodes + most.1
                }
                _ => false,
            };
            let Some(at) = self.open.iter().rposition(too_large) else {
                self.count_item();
                return true;
            };
            let (from, out, nodes) = (self.open[at].from, self.open[at].out, self.open[at].nodes);
            let depth = self.open.len() - at;
            self.open.truncate(at);
            if self.as_text(from, out, nodes, depth).is_none() {
                return false;
            }
        }
    }

    /// Enters a whole item of a record or list, or takes it out again if it does not fit.
    fn count_item(&mut self) {
        let (bytes, nodes) = (self.out.len(), self.nodes);
        let Some(open) = self.open.last_mut() else { return };
        open.items += 1;
        let size = bytes - open.whole.0;
        let fits = match open.kind {
            LevelKind::Tree(_) => return,
            LevelKind::List => open.items <= limits::CALLS && bytes - open.out <= limits::CALLS_BYTES,
            LevelKind::Record if size <= limits::SMALL_FIELD => {
                bytes - open.out <= limits::RECORD + limits::TEXT
                    && nodes - open.nodes <= 2 * limits::RECORD_NODES
            }
            LevelKind::Record => {
                bytes - open.out <= limits::RECORD && nodes - open.nodes <= limits::RECORD_NODES
            }
        };
        if fits {
            open.whole = (bytes, nodes);
        } else {
            let whole = open.whole;
            self.out.truncate(whole.0);
            self.nodes = whole.1;
        }
    }
}

/// What a tree may hold so many levels below its record: bytes and values.
fn tree(level: usize) -> (usize, usize) {
    let share = level.min(2);
    (limits::TREE >> share, limits::TREE_NODES >> share)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::any_json::any_json;

    fn short(text: &str) -> String {
        truncate(text.as_bytes()).map_or_else(|| "none".to_owned(), |b| String::from_utf8(b).unwrap())
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(&short(text)).unwrap_or_else(|e| panic!("{e}: {}", short(text)))
    }

    #[test]
    fn what_is_within_the_limits_stays() {
        for text in [
            r#"{"a":[1,-2.5e3,{"b":"\"\\\u00e9\ud83d\ude00"}],"c":null,"d":{},"e":[],"f":""}"#,
            r#"{"calls":[{"tool":"a","args":{"x":[]}},{"tool":"b"}],"tool_calls":[]}"#,
            "[]",
            r#""x\\""#,
            "12",
        ] {
            assert_eq!(short(text), text);
        }
        assert_eq!(value(" { \"a\" : [ true , null ] } \n"), json!({"a": [true, null]}));
    }

    #[test]
    fn what_is_not_one_whole_value_is_refused() {
        for text in ["", "{", r#"{"a":"#, r#"{"a":"b\"}"#, "[}", "{} {}", "[1,2", r#"{"a":1"#, "]", "\"a"] {
            assert_eq!(short(text), "none", "{text}");
        }
        for text in ["[1 2]", "[1,]", "{,}", r#"{"a" "b"}"#, "[,1]"] {
            assert!(serde_json::from_str::<Value>(&short(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        let text = format!(r#"{{"output":"start{}end"}}"#, r"\n\u00e9".repeat(200_000));
        let event = value(&text);
        let kept = event["output"].as_str().unwrap();
        assert!(kept.len() <= limits::TEXT && kept.starts_with("start\n") && kept.ends_with("\néend"));
        assert!(kept.contains("KiB, 0x"), "{}", kept.len());
        for shift in 0..12 {
            let text = format!(r#"["{}{}"]"#, "x".repeat(shift), r"\\\ud83d\ude00\t".repeat(20_000));
            let kept = value(&text)[0].as_str().unwrap().to_owned();
            assert!(kept.matches('\u{fffd}').count() <= 2, "half a pair at each cut at most");
        }
    }

    #[test]
    fn a_large_tree_becomes_text_and_what_is_around_it_stays() {
        let big = format!("[{}1]", r#"{"":{}},"#.repeat(100_000));
        let event = value(&format!(r#"{{"a":1,"result":{{"ok":false,"data":{big},"last":[2]}},"z":"end"}}"#));
        assert_eq!((&event["a"], &event["z"]), (&json!(1), &json!("end")));
        assert_eq!((&event["result"]["ok"], &event["result"]["last"]), (&json!(false), &json!([2])));
        let text = event["result"]["data"].as_str().unwrap();
        assert!(
            text.starts_with(r#"[{"":{}}"#) && text.ends_with("{}},1]") && text.len() <= limits::TREE_TEXT
        );
        let other = value(&format!(r#"{{"result":{{"data":{}}}}}"#, big.replacen("{}", "[]", 90_000)));
        assert_ne!(other["result"]["data"], event["result"]["data"]);
    }

    #[test]
    fn calls_and_fields_that_do_not_fit_are_left_out() {
        let call = format!(r#"{{"tool":"t","args":{{"x":"{}"}}}}"#, "y".repeat(60_000));
        let turn = value(&format!(
            r#"{{"calls":[{}{{"tool":"last"}}],"type":"turn"}}"#,
            format!("{call},").repeat(40)
        ));
        let kept = turn["calls"].as_array().unwrap().len();
        assert!((10..40).contains(&kept) && turn["type"] == "turn", "{kept}");
        let many = value(&format!(r#"{{"calls":[{}{{}}],"type":"turn"}}"#, "{},".repeat(1000)));
        assert_eq!(many["calls"].as_array().unwrap().len(), limits::CALLS);
        let fields: String = (0..100).map(|n| format!(r#""f{n}":"{}","#, "y".repeat(60_000))).collect();
        let record = value(&format!(r#"{{{fields}"type":"end"}}"#));
        assert!(record["type"] == "end" && record.as_object().unwrap().len() < 40);
    }

    proptest::proptest! {
        #[test]
        fn what_is_within_the_limits_means_the_same(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let short = truncate(text.as_bytes()).unwrap();
            proptest::prop_assert_eq!(serde_json::from_slice::<Value>(&short).unwrap(), value);
        }

        #[test]
        fn what_is_no_json_is_not_made_json(text in r#"[\[\]{}",:\\ u0-9a-eN\n.-]{0,40}"#) {
            let strict = serde_json::from_str::<Value>(&text);
            match (strict, truncate(text.as_bytes()).and_then(|b| serde_json::from_slice::<Value>(&b).ok())) {
                (Ok(value), short) => proptest::prop_assert_eq!(short, Some(value)),
                // Only what is broken inside a string or a number may be repaired.
                (Err(_), Some(_)) => proptest::prop_assert!(text.contains(['"', 'N', 'e', 'E']), "{}", text),
                (Err(_), None) => {}
            }
        }
    }
}
