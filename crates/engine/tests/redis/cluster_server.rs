//! A Redis Cluster on free ports, which ends with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::wait::wait_for;
use crate::redis_server::RedisServer;

/// The first slot of each of three nodes, and the end.
pub(crate) const SLOTS: [u16; 4] = [0, 5461, 10_923, 16_384];

/// Three nodes that share the slots. A fourth is a replica of the first, a fifth of the second, and so on.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// The options of every node.
    pub(crate) const OPTIONS: [[&str; 2]; 4] = [
        ["--cluster-enabled", "yes"],
        // Nodes take over from others when the test says so, not when the machine is busy.
        ["--cluster-node-timeout", "600000"],
        ["--repl-diskless-sync-delay", "0"],
        ["--cluster-require-full-coverage", "no"],
    ];

    /// Starts the nodes.
    pub(crate) fn start(nodes: usize) -> Self {
        let nodes: Vec<RedisServer> =
            (0..nodes).map(|_| RedisServer::start_with(&Self::OPTIONS.concat())).collect();
        for (n, node) in nodes.iter().enumerate() {
            if n < 3 {
                let slots: Vec<String> = (SLOTS[n]..SLOTS[n + 1]).map(|slot| slot.to_string()).collect();
                node.ask(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
            }
            node.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1));
            nodes[0].ask(&format!("CLUSTER MEET 127.0.0.1 {}", node.port()));
        }
        let cluster = Self { nodes };
        let replicas = cluster.nodes.iter().skip(3);
        for (replica, master) in replicas.clone().zip(&cluster.nodes) {
            let replicate = format!("CLUSTER REPLICATE {}", master.ask("CLUSTER MYID"));
            wait_for("the replica knows its master", || replica.try_ask(&replicate).is_ok());
        }
        for replica in replicas {
            wait_for("the replica is in sync", || replica.replication().contains("master_link_status:up"));
        }
        let known = format!("cluster_known_nodes:{}\r", cluster.nodes.len());
        let is_ready = |node: &RedisServer| {
            let info = node.ask("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains(&known)
        };
        wait_for("the cluster is up", || cluster.nodes.iter().all(is_ready));
        cluster
    }

    pub(crate) fn url(&self) -> String {
        self.nodes[0].url()
    }

    /// Returns the slot of a session of a store without a project.
    pub(crate) fn slot(&self, session: &str) -> u16 {
        self.nodes[0].ask(&format!("CLUSTER KEYSLOT {{deloop:s:{session}}}")).parse().unwrap()
    }
}

impl RedisServer {
    pub(crate) fn port(&self) -> u16 {
        self.url().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Waits until a server that hung has carried out what it was sent before. It reads from all connections in turn, and
    /// accepts them in order, so the first answer may come before the others, but not the second.
    pub(crate) fn catch_up(&self) {
        self.ask("PING");
        self.ask("PING");
    }

    pub(crate) fn replication(&self) -> String {
        self.ask("INFO replication")
    }

    /// Runs a command and returns its answer, if that is a text or a number; panics on an error.
    pub(crate) fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap()
    }

    /// Runs a command and returns its answer or its error.
    pub(crate) fn try_ask(&self, command: &str) -> Result<String, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        write!(stream, "{command}\r\n").unwrap();
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        let (kind, text) = line.trim_end().split_at(1);
        match kind {
            "-" => Err(text.to_owned()),
            "$" => {
                let mut bytes = vec![0; text.parse().unwrap()];
                answer.read_exact(&mut bytes).unwrap();
                Ok(String::from_utf8(bytes).unwrap())
            }
            _ => Ok(text.to_owned()),
        }
    }
}
