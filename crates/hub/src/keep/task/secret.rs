//! Secrets with the tokens of service accounts.

use std::sync::Arc;

use berth_hub_guard::ServiceAccountRef;
use berth_hub_store::{Key, ListQuery, ResourceKey};
use berth_hub_wire::Status;

use super::Worker;
use crate::keep::secrets::{self, Next};
use crate::read::parse;
use crate::resource::{Terms, meta};

impl Worker {
    /// A Secret is filled, or goes where its account is gone.
    pub(super) async fn secret(&self, key: &Key) -> Result<(), Status> {
        let (Some(entry), Some(resource)) = (self.core.ledger.get(key), self.resource(&key.resource)) else {
            return Ok(());
        };
        let secret = parse(entry.json());
        let Some(name) = secrets::account(&secret) else { return Ok(()) };
        let accounts = ResourceKey::new("", "serviceaccounts");
        let account = self.core.ledger.find(&accounts, &key.namespace, name).map(|entry| parse(entry.json()));
        let ca = &self.core.ca_pem;
        match (secrets::decide(&secret, account.as_ref(), ca), &account) {
            (Next::Fill { token }, Some(account)) => {
                let token = token.then(|| {
                    let account = ServiceAccountRef {
                        namespace: key.namespace.to_string(),
                        name: name.to_owned(),
                        uid: meta::text(account, "uid").to_owned(),
                    };
                    self.core.authenticator.accounts().issue_for_secret(&account, &key.name)
                });
                let token = token.transpose().map_err(|error| Status::internal(&error.to_string()))?;
                let filled = secrets::filled(&secret, account, ca, token.as_deref());
                self.tokens.keep(&resource, &entry, filled).await
            }
            (Next::Delete, _) => self.tokens.delete(&resource, &entry, Terms::default()).await,
            _ => Ok(()),
        }
    }

    /// The Secrets of a namespace, after an account in it is gone.
    pub(super) async fn secrets(&self, namespace: &Arc<str>) -> Result<(), Status> {
        let query = ListQuery { namespace: Some(namespace), ..ListQuery::default() };
        let listed = self.core.ledger.list(&ResourceKey::new("", "secrets"), &query);
        for entry in listed.map(|listing| listing.entries).unwrap_or_default() {
            self.secret(entry.key()).await?;
        }
        Ok(())
    }
}
