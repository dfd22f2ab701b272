//! Runs the body of a fuzz target on its seeds and on random changes to them, with any compiler.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Changed inputs of each target, at least.
const INPUTS: u64 = 300;
/// Longer inputs show nothing new and make each run slow.
const LONGEST: usize = 4096;
/// Pieces that a single changed byte would hardly ever make.
const PIECES: [&str; 12] =
    ["\"", "\\", "{", "[", "\n", "\0", "\u{202e}", "\u{feff}", "1e400", "$(", "<<E\n", "\\ud800"];

/// Runs a body on all seeds of a target, of which there are at least so many, and on what changes make of them.
pub(crate) fn run_target(target: &str, least: usize, run: fn(&[u8])) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut seeds: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(seeds.len() >= least, "{} seeds in {}", seeds.len(), folder.display());
    let check = |name: &str, input: &[u8]| {
        let ran = std::panic::catch_unwind(|| run(input));
        assert!(ran.is_ok(), "{name} fails; the panic is above. The input: {}", input.escape_ascii());
    };
    let mut inputs = Vec::new();
    for seed in seeds {
        let bytes = std::fs::read(&seed).unwrap();
        check(&seed.display().to_string(), &bytes);
        inputs.push(bytes);
    }
    let seconds = std::env::var("DELOOP_FUZZ_SECONDS").map_or(0, |seconds| seconds.parse().unwrap());
    let (start, time) = (Instant::now(), Duration::from_secs(seconds));
    for n in 0.. {
        if n >= INPUTS && start.elapsed() >= time {
            break;
        }
        check(&format!("{target}: input {n}"), &changed(&inputs, &mut Random(n)));
    }
}

/// Changes a seed in a few places.
fn changed(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let from = random.below(input.len() + 1);
        let to = from + random.below((input.len() - from).min(64) + 1);
        let other = &seeds[random.below(seeds.len())];
        let with: Vec<u8> = match random.below(6) {
            0 => vec![u8::try_from(random.below(256)).unwrap()],
            1 => Vec::new(),
            2 => input[from..to].repeat(2 + random.below(8)),
            3 => other[random.below(other.len() + 1)..].to_vec(),
            4 => input[from..to].iter().map(|byte| byte ^ 1 << (from % 8)).collect(),
            _ => PIECES[random.below(PIECES.len())].as_bytes().to_vec(),
        };
        input.splice(from..to, with);
    }
    input.truncate(LONGEST);
    input
}

/// splitmix64, so that the number of an input is enough to make it again.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end.max(1) as u64).unwrap_or(0)
    }
}
