"""`moldau.admin`: what the methods of `moldau.Admin` take and return, besides `moldau.NewTopic`."""

from moldau.client.administration.acls import Acl, AclFilter
from moldau.client.administration.cluster import (
    ClusterDescription,
    EligibleLeaders,
    Features,
    LogDir,
    Reassignment,
    ReplicaSize,
    VersionRange,
)
from moldau.client.administration.configs import ConfigEntry, Resource
from moldau.client.administration.groups import GroupDescription, GroupListing, GroupMember
from moldau.client.administration.quotas import QuotaEntity
from moldau.client.administration.records import ListedOffset
from moldau.client.administration.scram import ScramCredential, ScramDeletion, ScramUpsertion
from moldau.client.administration.tokens import TokenDescription
from moldau.client.administration.transactions import (
    OpenTransaction,
    ProducerDescription,
    TransactionDescription,
    TransactionListing,
)

__all__ = [
    "Acl",
    "AclFilter",
    "ClusterDescription",
    "ConfigEntry",
    "EligibleLeaders",
    "Features",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "ListedOffset",
    "LogDir",
    "OpenTransaction",
    "ProducerDescription",
    "QuotaEntity",
    "Reassignment",
    "ReplicaSize",
    "Resource",
    "ScramCredential",
    "ScramDeletion",
    "ScramUpsertion",
    "TokenDescription",
    "TransactionDescription",
    "TransactionListing",
    "VersionRange",
]
