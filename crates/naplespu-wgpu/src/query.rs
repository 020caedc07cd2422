//! Query sets of timestamps.

use crate::error::{Error, Result, label, named};
use crate::shared::Shared;
use crate::sink::lock;
use std::sync::{Arc, Mutex};
use wgpu::custom::{DispatchQuerySet, QuerySetInterface};
use wgpu::{Features, QUERY_SET_MAX_QUERIES, QuerySetDescriptor, QueryType};

/// The timestamps of a query set.
#[derive(Debug)]
enum Stamps {
    Live(Vec<u64>),
    Invalid,
    Destroyed,
}

/// A query set, which commands share.
#[derive(Debug)]
pub(crate) struct Queries {
    shared: Arc<Shared>,
    label: String,
    pub(crate) count: u32,
    stamps: Mutex<Stamps>,
}

/// The handle of a query set.
#[derive(Debug)]
pub(crate) struct QuerySet(Arc<Queries>);

impl QuerySet {
    /// Creates a query set. If that fails, the set is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &QuerySetDescriptor<'_>) -> Self {
        let stamps = match check(shared, desc) {
            Ok(()) => Stamps::Live(vec![0; desc.count as usize]),
            Err(error) => {
                shared.report("Device::create_query_set", error);
                Stamps::Invalid
            }
        };
        Self(Arc::new(Queries {
            shared: Arc::clone(shared),
            label: label(desc.label),
            count: desc.count,
            stamps: Mutex::new(stamps),
        }))
    }
}

fn check(shared: &Shared, desc: &QuerySetDescriptor<'_>) -> Result<()> {
    shared.check()?;
    if !matches!(desc.ty, QueryType::Timestamp) {
        return Err(Error::QueryType(desc.ty));
    }
    if !shared.features.contains(Features::TIMESTAMP_QUERY) {
        return Err(Error::MissingFeature("TIMESTAMP_QUERY"));
    }
    Error::check_limit("the number of queries", desc.count, QUERY_SET_MAX_QUERIES)
}

impl Queries {
    /// Returns the query set of a handle.
    pub(crate) fn of(shared: &Arc<Shared>, set: &DispatchQuerySet) -> Result<Arc<Self>> {
        Self::on(shared, set.as_custom::<QuerySet>())
    }

    /// Returns the query set of a handle that a program has.
    pub(crate) fn of_user(shared: &Arc<Shared>, set: &wgpu::QuerySet) -> Result<Arc<Self>> {
        Self::on(shared, set.as_custom::<QuerySet>())
    }

    fn on(shared: &Arc<Shared>, set: Option<&QuerySet>) -> Result<Arc<Self>> {
        let Some(QuerySet(inner)) = set.filter(|set| Arc::ptr_eq(&set.0.shared, shared)) else {
            return Err(Error::OtherDevice("the query set".to_owned()));
        };
        if matches!(*lock(&inner.stamps), Stamps::Invalid) {
            return Err(Error::Invalid(inner.name()));
        }
        Ok(Arc::clone(inner))
    }

    fn name(&self) -> String {
        named("query set", &self.label)
    }

    /// Returns an error if the queries are not in the set.
    pub(crate) fn check_range(&self, first: u32, count: u32) -> Result<()> {
        let range = u64::from(first)..u64::from(first) + u64::from(count);
        if range.end <= u64::from(self.count) {
            return Ok(());
        }
        Err(Error::OutOfRange {
            of: self.name(),
            range,
            size: self.count.into(),
            unit: "queries",
        })
    }

    /// Returns an error if the set is destroyed.
    pub(crate) fn check(&self) -> Result<()> {
        match *lock(&self.stamps) {
            Stamps::Live(_) => Ok(()),
            Stamps::Invalid => Err(Error::Invalid(self.name())),
            Stamps::Destroyed => Err(Error::Destroyed(self.name())),
        }
    }

    /// Writes a timestamp in cycles.
    pub(crate) fn write(&self, index: u32, cycles: u64) {
        if let Stamps::Live(stamps) = &mut *lock(&self.stamps)
            && let Some(stamp) = stamps.get_mut(index as usize)
        {
            *stamp = cycles;
        }
    }

    /// Returns the bytes of timestamps.
    pub(crate) fn read(&self, first: u32, count: u32) -> Vec<u8> {
        let stamps = lock(&self.stamps);
        let Stamps::Live(stamps) = &*stamps else {
            return Vec::new();
        };
        let some = stamps.iter().skip(first as usize).take(count as usize);
        some.flat_map(|stamp| stamp.to_le_bytes()).collect()
    }
}

impl QuerySetInterface for QuerySet {
    fn destroy(&self) {
        let mut stamps = lock(&self.0.stamps);
        if matches!(*stamps, Stamps::Live(_)) {
            *stamps = Stamps::Destroyed;
        }
    }
}
