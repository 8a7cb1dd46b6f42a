//! What a program is told of the fabric: of all tenants, or of its own alone.

/// What the holder of a certificate may see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sight {
    /// Everything: the fabric's own certificate, which its operator has, and those of tenants that
    /// the tenants file lets see it.
    All,
    /// What is of this tenant.
    Own(String),
}

impl Sight {
    /// Whether what belongs to a tenant is seen. What belongs to none is the operator's.
    pub(crate) fn sees(&self, tenant: Option<&str>) -> bool {
        match self {
            Sight::All => true,
            Sight::Own(own) => tenant == Some(own),
        }
    }
}
