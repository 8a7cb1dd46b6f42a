//! What the tenants file says, checked.

use std::collections::BTreeMap;

use trib_messages::quota::QuotaField;
use trib_topology::{Bound, LimitTable};
use trib_wire::Mode;
use trib_wire::header::WINDOW_MAX;

use super::amounts::{Amounts, Caps, Kind, Share};
use super::book::Scope;
use super::sight::Sight;

/// The tenant that stands for all that the file does not name, and for programs whose certificate
/// names none.
pub(crate) const OTHERS: &str = "*";

/// Which tenant may use how much.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Policy {
    /// What one aggregation node has for all jobs.
    pub node: Caps,
    /// What the jobs may have whose trees have their root at one aggregation node.
    pub root: Caps,
    /// The share of a node that a job gets if it does not ask.
    pub share: Option<Share>,
    pub tenants: BTreeMap<String, Tenant>,
    /// The hosts that are kept, and for which tenant.
    pub hosts: BTreeMap<String, String>,
}

/// One tenant.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tenant {
    /// A job of a tenant with a higher priority goes first.
    pub priority: i32,
    /// The most that it may have in the whole fabric, which is a number of jobs.
    pub fabric: Caps,
    /// The most that it may have at one aggregation node, of everything else.
    pub node: Caps,
    /// The share of every capacity that no other tenant may take.
    pub reserve: Option<Share>,
    /// The least that protects the payloads of its jobs, if the fabric does not demand more.
    pub data_path: Option<Mode>,
    /// Whether it is told of other tenants' jobs.
    pub sees_all: bool,
}

impl Policy {
    /// The name under which a tenant's jobs count.
    pub(crate) fn key<'a>(&self, tenant: Option<&'a str>) -> &'a str {
        tenant.filter(|name| self.tenants.contains_key(*name)).unwrap_or(OTHERS)
    }

    /// The tenant for which a host is kept. Names are looked up as in the topology: in full, and
    /// else up to the first dot.
    pub(crate) fn keeper_of(&self, host: &str) -> Option<&str> {
        let short = host.split('.').next().unwrap_or(host);
        [host, short].into_iter().find_map(|name| self.hosts.get(name)).map(String::as_str)
    }

    /// What a program with a certificate of this tenant may see. A certificate without a tenant is
    /// the fabric's own.
    pub(crate) fn sight(&self, tenant: Option<&str>) -> Sight {
        match tenant {
            Some(name) if !self.tenants.get(self.key(tenant)).is_some_and(|tenant| tenant.sees_all) => {
                Sight::Own(name.to_owned())
            }
            _ => Sight::All,
        }
    }

    /// The priority of a tenant. A higher one goes first.
    pub(crate) fn priority(&self, tenant: &str) -> i32 {
        self.tenants.get(tenant).map_or(0, |tenant| tenant.priority)
    }

    /// What there is in a scope for all tenants together.
    pub(crate) fn capacity(&self, scope: &Scope) -> Caps {
        match scope {
            Scope::Fabric => Caps::default(),
            Scope::Node(_) => self.node,
            Scope::Root(_) => self.root,
        }
    }

    /// The most that a tenant may have in a scope.
    pub(crate) fn limit(&self, tenant: &str, scope: &Scope) -> Caps {
        match (self.tenants.get(tenant), scope) {
            (Some(tenant), Scope::Fabric) => tenant.fabric,
            (Some(tenant), Scope::Node(_)) => tenant.node,
            _ => Caps::default(),
        }
    }

    /// What is kept for a tenant in a scope.
    pub(crate) fn reserved(&self, tenant: &str, scope: &Scope) -> Amounts {
        let Some(share) = self.tenants.get(tenant).and_then(|tenant| tenant.reserve) else { return Amounts::default() };
        let capacity = self.capacity(scope);
        Amounts::of(&Kind::ALL.map(|kind| (kind, capacity.get(kind).map_or(0, |amount| share.of(amount)))))
    }

    /// The most that a tenant could have in a scope if no other tenant had anything there.
    pub(crate) fn entitlement(&self, tenant: &str, scope: &Scope, kind: Kind) -> Option<u64> {
        let limit = self.limit(tenant, scope).get(kind);
        let room = self.capacity(scope).get(kind).map(|capacity| {
            let others = self.tenants.keys().filter(|name| *name != tenant);
            let kept: u64 = others.map(|name| self.reserved(name, scope).get(kind)).sum();
            capacity.saturating_sub(kept)
        });
        [limit, room].into_iter().flatten().min()
    }

    /// The fabric's limits for jobs of a tenant.
    pub(crate) fn lower(&self, tenant: &str, table: &LimitTable) -> LimitTable {
        let mut table = table.clone();
        let anywhere = [Scope::Node(String::new()), Scope::Root(String::new())];
        let rows = [
            (Kind::Groups, QuotaField::Groups, 1),
            // The least is one group's slots, whatever its window: a job that cannot have these is
            // refused for what it lacks.
            (Kind::Osts, QuotaField::Osts, u64::from(WINDOW_MAX)),
            (Kind::Streams, QuotaField::Streams, 1),
            (Kind::Memory, QuotaField::NodeMemory, 1),
        ];
        for (kind, field, least) in rows {
            let Bound { default, maximum } = table[field];
            let share = self.share.and_then(|share| Some(share.of(self.node.get(kind)?)));
            let most = anywhere.iter().filter_map(|scope| self.entitlement(tenant, scope, kind)).min();
            let default = share.unwrap_or(default).min(most.unwrap_or(u64::MAX)).max(least);
            table[field] = Bound { default: default.min(maximum), maximum };
        }
        let least = self.tenants.get(tenant).and_then(|tenant| tenant.data_path);
        let Bound { default, maximum } = table[QuotaField::DataPath];
        let default = default.max(least.map_or(0, |mode| mode.code().into()));
        table[QuotaField::DataPath] = Bound { default, maximum: maximum.max(default) };
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy { share: "1/4".parse().ok(), ..Policy::default() };
        policy.node.set(Kind::Memory, Some(64 << 30));
        policy.node.set(Kind::Streams, Some(64));
        let mut astro = Tenant { reserve: "1/2".parse().ok(), priority: 3, ..Tenant::default() };
        astro.node.set(Kind::Groups, Some(100));
        policy.tenants.insert("astro".into(), astro);
        policy.hosts.insert("h1".into(), "astro".into());
        policy
    }

    #[test]
    fn defaults_are_shares_within_what_a_tenant_could_have() {
        let policy = policy();
        let table = LimitTable::default();
        let others = policy.lower(OTHERS, &table);
        assert_eq!((others[QuotaField::Streams].default, others[QuotaField::Streams].maximum), (16, 64));
        assert_eq!(others[QuotaField::NodeMemory], Bound { default: 16 << 30, maximum: 16 << 30 });
        assert_eq!(
            (others[QuotaField::Groups], others[QuotaField::Osts]),
            (table[QuotaField::Groups], table[QuotaField::Osts]),
            "a node has no such capacity"
        );
        assert_eq!(policy.lower("astro", &table)[QuotaField::Groups].default, 100);
        // Half of the node is kept for another tenant, so three quarters cannot be a default.
        let greedy = Policy { share: "3/4".parse().ok(), ..policy };
        assert_eq!(greedy.lower(OTHERS, &table)[QuotaField::Streams].default, 32);
        assert_eq!(greedy.lower("astro", &table)[QuotaField::Streams].default, 48);
        assert_eq!(Policy::default().lower(OTHERS, &table), table);
    }

    #[test]
    fn a_tenant_raises_what_protects_payloads_and_never_lowers_it() {
        let mut policy = policy();
        let field = QuotaField::DataPath;
        let least = |policy: &Policy, table: &LimitTable| policy.lower("astro", table)[field].default;
        let mut table = LimitTable::default();
        for (fabric, tenant, expected) in [(0, None, 0), (0, Some(Mode::Signed), 1), (2, Some(Mode::Signed), 2)] {
            table[field] = Bound { default: fabric, ..table[field] };
            policy.tenants.entry("astro".into()).or_default().data_path = tenant;
            assert_eq!(least(&policy, &table), expected);
            assert_eq!(policy.lower(OTHERS, &table)[field], table[field], "another one's is as before");
        }
        // A fabric that gives no more than it demands gives a tenant what that one demands.
        table[field] = Bound { default: 0, maximum: 0 };
        policy.tenants.entry("astro".into()).or_default().data_path = Some(Mode::Encrypted);
        assert_eq!(policy.lower("astro", &table)[field], Bound { default: 2, maximum: 2 });
    }

    #[test]
    fn who_is_not_named_counts_with_the_others_and_hosts_are_found_by_either_name() {
        let policy = policy();
        assert_eq!((policy.key(Some("astro")), policy.key(Some("bio")), policy.key(None)), ("astro", "*", "*"));
        assert_eq!((policy.priority("astro"), policy.priority(OTHERS)), (3, 0));
        assert_eq!((policy.keeper_of("h1"), policy.keeper_of("h1.cluster")), (Some("astro"), Some("astro")));
        assert_eq!(policy.keeper_of("h2"), None);
    }

    #[test]
    fn a_tenant_sees_its_own_unless_the_file_grants_it_all() {
        let mut policy = policy();
        let own = |name: &str| Sight::Own(name.to_owned());
        assert_eq!((policy.sight(Some("astro")), policy.sight(Some("bio"))), (own("astro"), own("bio")));
        assert_eq!((policy.sight(None), Policy::default().sight(Some("bio"))), (Sight::All, own("bio")));
        policy.tenants.insert(OTHERS.into(), Tenant { sees_all: true, ..Tenant::default() });
        assert_eq!((policy.sight(Some("astro")), policy.sight(Some("bio"))), (own("astro"), Sight::All));
        assert!(own("bio").sees(Some("bio")) && !own("bio").sees(Some("astro")) && !own("bio").sees(None));
    }
}
