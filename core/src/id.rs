//! Ids that cannot be mistaken for one another: UUID version 7, made by the application.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef, Postgres};
use uuid::Uuid;

/// The id of one kind of row. `Of` only keeps kinds apart; it holds nothing.
pub struct Id<Of>(Uuid, PhantomData<fn() -> Of>);

/// Marks the id of a user.
#[derive(Debug)]
pub enum OfUser {}
/// Marks the id of an uploaded image.
#[derive(Debug)]
pub enum OfImage {}
/// Marks the id of a job.
#[derive(Debug)]
pub enum OfJob {}
/// Marks the id of a result.
#[derive(Debug)]
pub enum OfResult {}
/// Marks the id of an order.
#[derive(Debug)]
pub enum OfOrder {}
/// Marks the id of a program's key.
#[derive(Debug)]
pub enum OfApiKey {}
/// Marks the id of a worker process.
#[derive(Debug)]
pub enum OfWorker {}

/// A user.
pub type UserId = Id<OfUser>;
/// An uploaded image.
pub type ImageId = Id<OfImage>;
/// A job.
pub type JobId = Id<OfJob>;
/// A result.
pub type ResultId = Id<OfResult>;
/// An order of a pack of credits.
pub type OrderId = Id<OfOrder>;
/// A program's key.
pub type ApiKeyId = Id<OfApiKey>;
/// A worker process; a new one each time it starts.
pub type WorkerId = Id<OfWorker>;

impl<Of> Id<Of> {
    /// A new id; later ones sort after earlier ones.
    #[expect(clippy::new_without_default, reason = "an id made by default would be a mistake")]
    pub fn new() -> Self {
        Self(Uuid::now_v7(), PhantomData)
    }

    /// The plain UUID, for queries.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl<Of> From<Uuid> for Id<Of> {
    fn from(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }
}

impl<Of> Clone for Id<Of> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Of> Copy for Id<Of> {}

impl<Of> PartialEq for Id<Of> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<Of> Eq for Id<Of> {}

impl<Of> Hash for Id<Of> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<Of> fmt::Display for Id<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<Of> fmt::Debug for Id<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<Of> FromStr for Id<Of> {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(|uuid| Self(uuid, PhantomData))
    }
}

impl<Of> Serialize for Id<Of> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, Of> Deserialize<'de> for Id<Of> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(Self::from)
    }
}

impl<Of> sqlx::Type<Postgres> for Id<Of> {
    fn type_info() -> PgTypeInfo {
        <Uuid as sqlx::Type<Postgres>>::type_info()
    }
}

impl<Of> PgHasArrayType for Id<Of> {
    fn array_type_info() -> PgTypeInfo {
        <Uuid as PgHasArrayType>::array_type_info()
    }
}

impl<Of> sqlx::Encode<'_, Postgres> for Id<Of> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        self.0.encode_by_ref(buffer)
    }
}

impl<Of> sqlx::Decode<'_, Postgres> for Id<Of> {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Uuid::decode(value).map(Self::from)
    }
}
