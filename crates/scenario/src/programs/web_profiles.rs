//! Behaviour of programs over HTTP/2 and HTTP/3, by name: the profiles of `http2` and `http3`.

use super::named_settings::NamedSetting;

/// Declares the profiles of one end, by the names that they have.
macro_rules! profiles {
    ($(#[$doc:meta])* $name:ident($profile:ty): $kind:literal, [$($value:expr),*]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $profile);

        impl NamedSetting for $name {
            const KIND: &'static str = $kind;
            const ALL: &'static [Self] = &[$(Self($value)),*];

            fn name(self) -> &'static str {
                self.0.name
            }
        }
    };
}

profiles! {
    /// A browser's policy: its connections, and the order in which its requests leave.
    BrowserPolicy(fetch::Browser): "browser", [fetch::Browser::CHROMIUM, fetch::Browser::FIREFOX]
}
profiles! {
    /// A client over HTTP/2.
    Http2Client(http2::Profile): "client over HTTP/2",
    [http2::Profile::CHROMIUM, http2::Profile::FIREFOX, http2::Profile::GO_CLIENT, http2::Profile::DEFAULT_CLIENT]
}
profiles! {
    /// A server over HTTP/2.
    Http2Server(http2::Profile): "server over HTTP/2", [http2::Profile::NGINX, http2::Profile::GO_SERVER]
}
profiles! {
    /// A client over HTTP/3.
    Http3Client(http3::Profile): "client over HTTP/3",
    [http3::Profile::CHROMIUM, http3::Profile::QUIC_GO, http3::Profile::QUINN]
}
profiles! {
    /// A server over HTTP/3.
    Http3Server(http3::Profile): "server over HTTP/3",
    [http3::Profile::NGINX, http3::Profile::QUIC_GO, http3::Profile::QUINN]
}

#[cfg(test)]
mod tests {
    use super::super::named_settings::named;
    use super::*;

    #[test]
    fn every_profile_is_found_by_its_name() {
        assert_eq!(named("go"), Ok(Http2Server(http2::Profile::GO_SERVER)));
        assert_eq!(Http2Client::ALL.map_names(), http2::Profile::CLIENTS.map(|profile| profile.name));
        assert_eq!(Http2Server::ALL.map_names(), http2::Profile::SERVERS.map(|profile| profile.name));
        assert_eq!(Http3Client::ALL.map_names(), http3::Profile::CLIENTS.map(|profile| profile.name));
        assert_eq!(Http3Server::ALL.map_names(), http3::Profile::SERVERS.map(|profile| profile.name));
        let error = named::<Http3Server>("iis").unwrap_err().to_string();
        assert!(error.contains("server over HTTP/3") && error.contains("quic-go"), "{error}");
    }

    trait MapNames {
        fn map_names(&self) -> Vec<&'static str>;
    }

    impl<T: NamedSetting> MapNames for [T] {
        fn map_names(&self) -> Vec<&'static str> {
            self.iter().map(|setting| setting.name()).collect()
        }
    }
}
