//! The authenticator: from a connection's certificate and a request's header to a user.
//!
//! Owns the order in which credentials are tried. Never says why credentials were refused: the answer is 401.

use std::sync::Arc;

use jiff::Timestamp;

use crate::authority::Peer;
use crate::refusal::Refusal;
use crate::token::{ObjectLookup, ServiceAccountTokens, StaticTokens, TokenError, Verified, shared};
use crate::user::User;

/// Makes users out of credentials.
#[derive(Debug)]
pub struct Authenticator {
    statics: StaticTokens,
    accounts: ServiceAccountTokens,
    anonymous: Arc<User>,
}

impl Authenticator {
    /// Accepts the tokens of a file and those of service accounts.
    pub fn new(statics: StaticTokens, accounts: ServiceAccountTokens) -> Self {
        Self { statics, accounts, anonymous: Arc::new(User::anonymous()) }
    }

    /// Makes and checks service account tokens.
    pub fn accounts(&self) -> &ServiceAccountTokens {
        &self.accounts
    }

    /// The user of a request. A good certificate wins, then a good token; bad credentials alone are a 401, none at
    /// all make the anonymous user.
    pub fn authenticate(
        &self,
        peer: &Peer,
        authorization: Option<&str>,
        now: Timestamp,
        lookup: &dyn ObjectLookup,
    ) -> Result<Arc<User>, Refusal> {
        let by_certificate = peer.user(now);
        if let Ok(Some(user)) = by_certificate {
            return Ok(Arc::clone(user));
        }
        match authorization.and_then(bearer) {
            Some(token) => match self.token(token, None, now, lookup) {
                Ok(Some(verified)) => Ok(Arc::new(verified.user)),
                Ok(None) | Err(_) => Err(Refusal::Unauthorized),
            },
            None => by_certificate.map(|_| Arc::clone(&self.anonymous)),
        }
    }

    /// Whom a token stands for; `Ok(None)` when nobody knows it. Static tokens are good for the API's own audiences only.
    pub fn token(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        now: Timestamp,
        lookup: &dyn ObjectLookup,
    ) -> Result<Option<Verified>, TokenError> {
        if let Some(user) = self.statics.find(token) {
            let own = self.accounts.audiences();
            let audiences = shared(own, audiences.unwrap_or(own));
            return Ok(Some(Verified { user: user.clone(), audiences }));
        }
        self.accounts.verify(token, audiences, now, lookup)
    }
}

/// The token of a `Bearer` header; other schemes are not credentials here.
fn bearer(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::token::DEFAULT_ISSUER;
    use serde_json::Value;

    struct Nothing;
    impl ObjectLookup for Nothing {
        fn find(&self, _: &str, _: &str, _: &str) -> Option<Value> {
            None
        }
    }

    fn now() -> Timestamp {
        "2026-11-16T12:00:00Z".parse().unwrap()
    }

    fn authenticator() -> Authenticator {
        let authority = Authority::in_memory(now()).unwrap();
        let accounts = ServiceAccountTokens::new(authority.signing_key(), DEFAULT_ISSUER);
        Authenticator::new(StaticTokens::parse("secret,alice,1", "f").unwrap(), accounts)
    }

    fn name(peer: &Peer, header: Option<&str>) -> Result<String, Refusal> {
        authenticator().authenticate(peer, header, now(), &Nothing).map(|user| user.name.clone())
    }

    fn known() -> Peer {
        let user = Arc::new(User::new("carol", Vec::<String>::new()));
        Peer::Known { user, not_after_s: now().as_second() }
    }

    #[test]
    fn no_credentials_make_the_anonymous_user() {
        assert_eq!(name(&Peer::None, None).unwrap(), "system:anonymous");
        assert_eq!(name(&Peer::None, Some("Basic YWJj")).unwrap(), "system:anonymous");
        assert_eq!(name(&Peer::None, Some("Bearer ")).unwrap(), "system:anonymous");
    }

    #[test]
    fn bad_credentials_are_refused_and_never_fall_back_to_anonymous() {
        assert_eq!(name(&Peer::None, Some("Bearer wrong")), Err(Refusal::Unauthorized));
        assert_eq!(name(&Peer::Refused, None), Err(Refusal::Unauthorized));
    }

    #[test]
    fn a_certificate_wins_over_a_token_and_a_token_over_a_bad_certificate() {
        assert_eq!(name(&known(), Some("Bearer secret")).unwrap(), "carol");
        assert_eq!(name(&Peer::Refused, Some("bearer secret")).unwrap(), "alice");
    }

    #[test]
    fn a_certificate_is_good_until_its_end_even_on_an_open_connection() {
        let Peer::Known { user, not_after_s } = known() else { unreachable!() };
        let ended = Peer::Known { user, not_after_s: not_after_s - 1 };
        assert_eq!(name(&ended, None), Err(Refusal::Unauthorized));
    }
}
