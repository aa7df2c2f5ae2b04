//! Damaged job files are refused or read, and never bring the reader down.

use super::super::{Options, from_api_json, parse};

const SAMPLE: &str = r#"
variable "count" {
  type    = number
  default = 2
  validation {
    condition     = var.count > 0
    error_message = "count must be positive"
  }
}
locals {
  name = "web-${upper("x")}"
  list = [for i in range(3) : "${i}-é"]
}
job "sample" {
  datacenters = ["dc1", "*"]
  meta { a = local.name }
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }
  group "g" {
    count = var.count
    network {
      port "http" { static = 8080 }
      dynamic "port" {
        for_each = { a = 1, b = 2 }
        labels   = ["p_${port.key}"]
        content { to = port.value }
      }
    }
    task "t" {
      driver = "exec"
      config {
        command = local.list[0] == "0" ? "a" : "b"
        args    = concat(["-x"], local.list[*], [NOMAD_TASK_DIR])
      }
      template {
        data = <<-EOF
          %{ for x in local.list ~}
          line ${x} $${kept} ${NOMAD_ALLOC_ID}
          %{ endfor ~}
        EOF
        destination = "local/x"
      }
      kill_timeout = "1m30s"
      env = { "A.B" = format("%05.2f|%-4s", 1.5, "é"), C = jsonencode({ a = [1, null] }) }
    }
  }
}
"#;

const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "${",
    "%{",
    "~}",
    "<<EOF\n",
    "EOF",
    "\n",
    "=",
    ".",
    "*",
    "\\u12",
    "null",
    "-",
    "1e999",
    "for",
    "é",
    "\u{0}",
    "99999999999999999999",
];

/// A small generator of numbers, the same ones in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

fn damaged(sample: &str, numbers: &mut Numbers) -> String {
    let mut chars: Vec<char> = sample.chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(chars.len());
        let end = (at + numbers.below(12)).min(chars.len());
        match numbers.below(4) {
            0 => drop(chars.drain(at..end)),
            1 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
            2 => {
                let copy = chars[at..end].to_vec();
                let to = numbers.below(chars.len());
                chars.splice(to..to, copy);
            }
            _ => {
                let piece = PIECES[numbers.below(PIECES.len())];
                chars.splice(at..end, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn damaged_files_cause_no_panic() {
    let options = Options::default();
    let whole = parse(SAMPLE, "sample", &options).map(|parsed| parsed.job);
    let in_json = serde_json::to_string(&whole.expect("the sample is good")).unwrap();
    let hcl_json = r#"{"locals": {"a": "${[1]}"}, "job": {"x": {"group": {"g": {"count": 1, "task": [{"t": {"env": {"a": "\ud83d\ude00\/"}}}]}}}}}"#;
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut read = 0;
    for _ in 0..400 {
        for sample in [SAMPLE, &in_json, hcl_json] {
            let text = damaged(sample, &mut numbers);
            match parse(&text, "damaged", &options) {
                Ok(_) => read += 1,
                Err(errors) => assert!(!errors.to_string().is_empty()),
            }
            drop(from_api_json(text.as_bytes()));
        }
    }
    // Some damage leaves a file good; if none did, the test would not reach far.
    assert!(read > 20, "{read}");
}
