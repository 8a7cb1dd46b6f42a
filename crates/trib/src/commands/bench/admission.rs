//! `trib bench admission`: how long the manager takes to plan a job and to install it at its nodes.
//!
//! The ranks are only names in a request and never connect, so a job may have as many as a cluster
//! has.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use trib_messages::reply::Reply;
use trib_messages::request::{JobRequest, QuotaAsk, Request};

use crate::commands::manager_option::{ManagerOption, unexpected};
use crate::failure::Failure;

/// Admit jobs whose ranks never come
///
/// Asks for a job, ends it, and asks again. The time of an admission is that from the request to
/// the ticket: planning the tree, settling the quota, and installing every logical node at its
/// aggregation node.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Ranks of the job
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    ranks: u32,
    /// Host names of the ranks, in turn
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "localhost")]
    hosts: Vec<String>,
    /// How often
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    times: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: ManagerOption,
}

impl Arguments {
    /// Asks for jobs and prints the times.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let channel = self.manager.connect(LIMIT)?;
        let ranks = self.ranks as usize;
        let request = Request::RequestJob(JobRequest {
            hosts: self.hosts.iter().cycle().take(ranks).cloned().collect(),
            pids: Vec::new(),
            deputies: Vec::new(),
            domains: Vec::new(),
            ask: QuotaAsk::default(),
            name: "trib bench admission".into(),
            user: String::new(),
            wait_ms: None,
            patience_ms: None,
        });
        let (mut admitted, mut nodes) = (Vec::new(), 0);
        for _ in 0..self.times {
            let start = Instant::now();
            let ticket = match channel.ask(&request, LIMIT)? {
                Reply::Granted(ticket) => ticket,
                other => return Err(unexpected(other)),
            };
            admitted.push(start.elapsed().as_secs_f64() * 1e3);
            nodes = ticket.nodes.len();
            match channel.ask(&Request::EndJob { job: ticket.job, why: None }, LIMIT)? {
                Reply::Ended { .. } => {}
                other => return Err(unexpected(other)),
            }
        }
        admitted.sort_by(f64::total_cmp);
        let (least, median, most) = (admitted[0], admitted[admitted.len() / 2], admitted[admitted.len() - 1]);
        if self.json {
            say!(
                "{}",
                json!({ "ranks": ranks, "logical_nodes": nodes, "times": self.times,
                "admission_ms": { "min": least, "median": median, "max": most } })
            )?;
        } else {
            say!(
                "{ranks} ranks, {nodes} logical nodes: admitted in {median:.1} ms, {least:.1} to {most:.1} of {}",
                self.times
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The time limit of each answer of the manager.
const LIMIT: Duration = Duration::from_secs(30);
const EXAMPLES: &str = "\
Examples:
  trib bench admission --ranks 10000
  trib bench admission --ranks 64 --hosts h0,h1,h2,h3 --times 100 --json";
