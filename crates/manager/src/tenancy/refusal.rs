//! A shortage in words: which tenant lacks what, how much of it there is, which jobs have the rest,
//! and what to do.

use std::time::Duration;

use trib_messages::reply::{Refusal, Resource};

use super::amounts::Kind;
use super::book::{Cap, Shortage};
use super::line::{Charged, State};
use super::policy::OTHERS;
use super::sight::Sight;
use crate::refuse::{lasting, refuse, too_much};

/// A host is kept for another tenant.
pub(super) fn kept_host(host: &str, tenant: &str, keeper: &str, sight: &Sight) -> Refusal {
    let text = format!(
        "host {host} is kept for {}, the job is of {}: run it on other hosts, or take the host from hosts in the tenants file",
        seen(keeper, sight),
        title(tenant)
    );
    refuse(Resource::Host, Some(&seen(keeper, sight)), text)
}

/// A claim cannot fit, whatever is given back.
pub(super) fn never(tenant: &str, shortage: &Shortage) -> Refusal {
    let Shortage { scope, kind, asked, available, most, cap } = shortage;
    let (whose, holder) = match cap {
        Cap::Limit => (format!("{} may have at most {most}", title(tenant)), title(tenant)),
        Cap::Capacity if available < most => (
            format!("there are {most}, of which {} are kept for other tenants", most - available),
            "a reservation".into(),
        ),
        Cap::Capacity => (format!("there are {most}"), scope.to_string()),
    };
    let text = format!(
        "the job of {} takes {} {scope}, {whose}: {}, or raise the amount in the tenants file",
        title(tenant),
        kind.counted(*asked),
        remedy(*kind, *available)
    );
    Refusal { holder: Some(holder), ..too_much(kind.resource(), *asked, *available, text) }
}

/// Why a claim does not stay in the line.
pub(super) enum End {
    /// The line is as long as it may be.
    Full,
    /// Its program has ended.
    Gone,
    /// It has waited as long as it wanted to.
    Over(Duration),
}

/// A claim in the line does not get its turn.
pub(super) fn of_waiting(state: &State, at: usize, end: End) -> Refusal {
    let sight = state.policy.sight(state.waiting[at].tenant.as_deref());
    let refusal = reason(state, at, &sight);
    let why = refusal.text;
    let text = match end {
        End::Full => format!("{why}; and no more jobs can wait than do: try again later"),
        End::Gone => format!("{why}; and the program that asked for the job is gone"),
        End::Over(Duration::ZERO) => format!("{why}, or wait for it with TRIB_WAIT_MS"),
        End::Over(patience) => {
            let (position, all) = (at + 1, state.waiting.len());
            format!("{why}; it waited for {} ms and was number {position} of {all} in line", patience.as_millis())
        }
    };
    Refusal { text, ..refusal }
}

/// Why a claim in the line waits, for who sees so much.
pub(super) fn reason(state: &State, at: usize, sight: &Sight) -> Refusal {
    let waiting = &state.waiting[at];
    let tenant = &waiting.claim.tenant;
    let Some(shortage) = &waiting.lacks else {
        return refuse(Resource::Jobs, None, "it is its turn");
    };
    let Shortage { scope, kind, asked, available, most, cap } = shortage;
    let held = holders(state, shortage, tenant);
    let jobs = told(&held, sight);
    let (whose, holder) = match cap {
        Cap::Limit => (format!("{} may have {most}", title(tenant)), title(tenant)),
        Cap::Capacity => {
            let others = state.book.others_at(tenant, scope, *kind);
            let (kept, holder) = kept_and_holder(&others, tenant, jobs.is_empty(), sight);
            (format!("there are {most} for all{kept}"), holder)
        }
    };
    let jobs = match &jobs[..] {
        [] => String::new(),
        jobs => format!(", {}", jobs.join(", ")),
    };
    // If the book itself has room, that is kept for claims that stand before.
    let before = match state.book.check(&waiting.claim) {
        Ok(()) => ", and the rest is for jobs that wait before it",
        Err(_) => "",
    };
    let text = format!(
        "the job of {} takes {} {scope}, of which {available} can be had: {whose}{jobs}{before}; {}",
        title(tenant),
        kind.counted(*asked),
        remedy(*kind, *available)
    );
    let refusal = Refusal { holder: Some(holder), ..too_much(kind.resource(), *asked, *available, text) };
    // It has been lacking since the last of the jobs came that have it.
    match held.iter().map(|(_, charged)| charged.since_ms).max() {
        Some(since_ms) => lasting(refusal, since_ms),
        None => refusal,
    }
}

/// The jobs that have some of it, as far as they count for the shortage. The job with the most is
/// the first.
fn holders<'a>(state: &'a State, shortage: &Shortage, tenant: &str) -> Vec<(u64, &'a Charged)> {
    let counts = |other: &str| shortage.cap == Cap::Capacity || other == tenant;
    let has = |charged: &Charged| charged.claim.at(&shortage.scope, shortage.kind);
    let charged = state.charged.values().filter(|charged| counts(&charged.claim.tenant));
    let mut jobs: Vec<(u64, &Charged)> = charged.map(|job| (has(job), job)).filter(|(amount, _)| *amount > 0).collect();
    jobs.sort_by_key(|(amount, _)| std::cmp::Reverse(*amount));
    jobs
}

/// The first three of these jobs that are seen, in words, and what the others have together.
fn told(jobs: &[(u64, &Charged)], sight: &Sight) -> Vec<String> {
    let tell = |(amount, charged): &(u64, &Charged)| {
        let job = charged.job.map_or_else(|| "a job that is being installed".into(), |job| job.to_string());
        let ended = if charged.ended { " (ended, but ranks of it are still at a node)" } else { "" };
        format!("{job}{ended} has {amount}")
    };
    let (own, foreign): (Vec<_>, Vec<_>) =
        jobs.iter().partition(|(_, charged)| sight.sees(Some(&charged.claim.tenant)));
    let mut told: Vec<String> = own.iter().copied().take(NAMED).map(tell).collect();
    if own.len() > NAMED {
        let rest = if foreign.is_empty() { "the rest" } else { "some" };
        told.push(format!("{} more jobs have {rest}", own.len() - NAMED));
    }
    if !foreign.is_empty() {
        let amount: u64 = foreign.iter().map(|(amount, _)| amount).sum();
        told.push(format!("jobs of other tenants have {amount}"));
    }
    told
}

/// What is kept for others, in words, and the tenant that is in the way most: one that has some of
/// it, or else one for which it is kept.
fn kept_and_holder(others: &[(String, u64, u64)], tenant: &str, nobody: bool, sight: &Sight) -> (String, String) {
    let mut kept: Vec<String> = Vec::new();
    let mut unseen = 0;
    for (name, has, kept_for) in others.iter().filter(|(_, has, kept)| kept > has) {
        match sight {
            Sight::All => kept.push(format!(", {} kept for {}", kept_for - has, title(name))),
            Sight::Own(_) => unseen += kept_for - has,
        }
    }
    kept.extend((unseen > 0).then(|| format!(", {unseen} kept for other tenants")));
    let most = others.iter().max_by_key(|(_, has, kept)| has.max(kept)).filter(|(_, has, kept)| *has.max(kept) > 0);
    let holder = match most {
        Some((name, _, _)) => seen(name, sight),
        None if nobody => "jobs that wait before it".into(),
        None => title(tenant),
    };
    (kept.concat(), holder)
}

fn remedy(kind: Kind, available: u64) -> String {
    match kind {
        Kind::Jobs => "let one end".into(),
        Kind::Memory => "ask for less with TRIB_QUOTA".into(),
        _ if available == 0 => "let one end".into(),
        kind => format!("ask for no more with TRIB_QUOTA={}={available}", kind.word()),
    }
}

/// The name of a tenant in a sentence.
fn title(tenant: &str) -> String {
    match tenant {
        OTHERS => "tenant * (all that the tenants file does not name)".into(),
        name => format!("tenant {name}"),
    }
}

/// The name of another tenant in a sentence, for who sees so much.
fn seen(tenant: &str, sight: &Sight) -> String {
    match sight {
        Sight::All => title(tenant),
        Sight::Own(_) => "another tenant".into(),
    }
}

/// The number of jobs that are named.
const NAMED: usize = 3;
