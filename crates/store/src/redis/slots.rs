use redis::{Cmd, Value};

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// A node's host and port.
pub(super) type NodeAddress = (String, u16);

/// Which node of a cluster answers for which slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    /// The first and last slot of a range, and its node. In the order of the slots.
    ranges: Vec<(u16, u16, NodeAddress)>,
    /// Nodes that hold copies.
    replicas: Vec<NodeAddress>,
}

impl SlotMap {
    /// Reads the answer to `CLUSTER SLOTS`. A node that doesn't know its own host is the one at `asked`.
    pub(super) fn of(answer: &Value, asked: &NodeAddress) -> Self {
        let mut map = Self::default();
        for range in items(answer) {
            let [first, last, nodes @ ..] = items(range) else { continue };
            let mut nodes = nodes.iter().filter_map(|node| address(node, asked));
            if let (Some(first), Some(last), Some(master)) = (slot(first), slot(last), nodes.next()) {
                map.ranges.push((first, last, master));
                map.replicas.extend(nodes);
            }
        }
        map.ranges.sort();
        map
    }

    /// Returns the node that answers for a slot.
    pub(super) fn node(&self, slot: u16) -> Option<&NodeAddress> {
        let at = self.ranges.partition_point(|(_, last, _)| *last < slot);
        self.ranges.get(at).filter(|(first, ..)| *first <= slot).map(|(.., node)| node)
    }

    /// Returns all nodes, once each.
    pub(super) fn nodes(&self) -> Vec<NodeAddress> {
        let mut nodes: Vec<_> = self.ranges.iter().map(|(.., node)| node.clone()).collect();
        nodes.extend(self.replicas.iter().cloned());
        nodes.sort();
        nodes.dedup();
        nodes
    }
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        _ => &[],
    }
}

fn slot(value: &Value) -> Option<u16> {
    match value {
        Value::Int(slot) => u16::try_from(*slot).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    }
}

fn address(node: &Value, asked: &NodeAddress) -> Option<NodeAddress> {
    let [host, Value::Int(port), ..] = items(node) else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        _ => "",
    };
    let host = if host.is_empty() || host == "?" { &asked.0 } else { host };
    Some((host.to_owned(), u16::try_from(*port).ok()?))
}

/// Returns the slot of the first key of a command.
pub(super) fn slot_of(command: &Cmd) -> u16 {
    let argument = |n| match command.args_iter().nth(n) {
        Some(redis::Arg::Simple(text)) => text,
        _ => b"",
    };
    let key = if argument(0) == b"EVAL" { argument(3) } else { argument(1) };
    let tag = || {
        let open = key.iter().position(|byte| *byte == b'{')? + 1;
        let length = key[open..].iter().position(|byte| *byte == b'}')?;
        Some(&key[open..open + length]).filter(|tag| !tag.is_empty())
    };
    crc16(tag().unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM, by which Redis assigns slots.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let slot = |key: &str| slot_of(redis::cmd("GET").arg(key));
        assert_eq!((slot("foo"), slot("bar"), slot("{user1000}.following")), (12_182, 5061, 3443));
        assert_eq!((slot("foo{}{bar}"), slot("foo{{bar}}zap")), (8363, 4015));
        assert_eq!(slot_of(redis::cmd("EVAL").arg("return 1").arg(1).arg("foo")), 12_182);
    }

    #[test]
    fn every_slot_has_the_node_that_answers_for_it() {
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let range = |first, last, nodes: Vec<Value>| {
            Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
        };
        let answer = Value::Array(vec![
            range(100, 16_383, vec![node(text("b"), 2), node(text("c"), 3)]),
            range(0, 50, vec![node(Value::Nil, 1)]),
            range(60, 99_999, vec![node(text("x"), 1)]),
            Value::Nil,
        ]);
        let map = SlotMap::of(&answer, &("a".to_owned(), 9));
        let node = |slot| map.node(slot).map(|(host, port)| (host.as_str(), *port));
        assert_eq!([0, 50].map(node), [Some(("a", 1)); 2]);
        assert_eq!([51, 99].map(node), [None; 2]);
        assert_eq!([100, 16_383].map(node), [Some(("b", 2)); 2]);
        assert_eq!(map.nodes().len(), 3);
    }
}
