//! A Redis Cluster on free ports, which ends with the test.

use std::time::{Duration, Instant};

use crate::redis_server::RedisServer;

/// The first slot of each of three nodes, and the end.
pub(crate) const SLOTS: [u16; 4] = [0, 5461, 10_923, 16_384];

/// Three nodes that share the slots, and a replica of the first if there are four.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

impl RedisCluster {
    pub(crate) fn start(nodes: usize) -> Option<Self> {
        let options = [
            ["--cluster-enabled", "yes"],
            ["--cluster-node-timeout", "1500"],
            ["--cluster-require-full-coverage", "no"],
        ];
        let nodes: Vec<RedisServer> =
            (0..nodes).map(|_| RedisServer::start_with(&options.concat())).collect::<Option<_>>()?;
        for (n, node) in nodes.iter().enumerate() {
            if n < 3 {
                let mut add = redis::cmd("CLUSTER");
                add.arg("ADDSLOTS").arg((SLOTS[n]..SLOTS[n + 1]).collect::<Vec<_>>());
                add.exec(&mut node.connect()).unwrap();
            }
            node.ask::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1));
            nodes[0].ask::<()>(&format!("CLUSTER MEET 127.0.0.1 {}", node.port()));
        }
        let cluster = Self { nodes };
        if cluster.nodes.len() > 3 {
            let first: String = cluster.nodes[0].ask("CLUSTER MYID");
            let replica = &cluster.nodes[3];
            wait_for("the replica knows its master", || {
                let mut replicate = redis::cmd("CLUSTER");
                replicate.arg("REPLICATE").arg(&first).exec(&mut replica.connect()).is_ok()
            });
            wait_for("the replica is in sync", || {
                replica.ask::<String>("INFO replication").contains("master_link_status:up")
            });
        }
        let known = format!("cluster_known_nodes:{}\r", cluster.nodes.len());
        let is_ready = |node: &RedisServer| {
            let info: String = node.ask("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains(&known)
        };
        wait_for("the cluster is up", || cluster.nodes.iter().all(is_ready));
        Some(cluster)
    }

    pub(crate) fn url(&self) -> String {
        self.nodes[0].url()
    }

    /// Returns sessions that the first node holds.
    pub(crate) fn sessions_of_the_first(&self, count: usize) -> Vec<String> {
        let slot = |name: &String| self.nodes[0].ask::<u16>(&format!("CLUSTER KEYSLOT {{deloop:s:{name}}}"));
        (0..).map(|n| format!("s{n}")).filter(|name| slot(name) < SLOTS[1]).take(count).collect()
    }
}

pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}
