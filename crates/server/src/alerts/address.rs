//! Which addresses an alert may be sent to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressClass {
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, unique local, or behind a carrier's NAT.
    Private,
    /// Where clouds hand out the credentials of a machine.
    Metadata,
    /// The network segment of this machine.
    LinkLocal,
    /// No single receiver.
    Multicast,
    /// Unspecified, for documentation, for tests, or reserved.
    Special,
}

impl AddressClass {
    /// Returns whether `allow_private` allows it. Nobody receives alerts at the others. The credentials of a cloud
    /// machine are there, so they stay refused.
    pub(crate) fn can_be_allowed(self) -> bool {
        matches!(self, Self::Loopback | Self::Private)
    }

    /// Returns a description that follows "is".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Loopback => "an address of this machine",
            Self::Private => "an address of a private network",
            Self::Metadata => "the metadata service of a cloud",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast address",
            Self::Special => "a reserved address",
        }
    }
}

/// The metadata services outside the link-local range: Alibaba Cloud, Oracle Cloud, Azure and, for IPv6, AWS.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// Networks that aren't on the public internet: the address, how many of its bits count, and what it is.
const NETWORKS_V4: [(Ipv4Addr, u32, AddressClass); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, AddressClass::Special),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressClass::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressClass::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressClass::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressClass::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressClass::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressClass::Special),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressClass::Special),
    (Ipv4Addr::new(192, 31, 196, 0), 24, AddressClass::Special),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressClass::Special),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressClass::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressClass::Special),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressClass::Special),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressClass::Special),
    (Ipv4Addr::new(224, 0, 0, 0), 4, AddressClass::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, AddressClass::Special),
];

/// The same for IPv6. What isn't in 2000::/3 is refused anyway; this gives it a name.
const NETWORKS_V6: [(Ipv6Addr, u32, AddressClass); 9] = [
    (Ipv6Addr::LOCALHOST, 128, AddressClass::Loopback),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, AddressClass::Private),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, AddressClass::Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, AddressClass::LinkLocal),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, AddressClass::Multicast),
    // Teredo, benchmarks, identifiers: none of it is a web server.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, AddressClass::Special),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, AddressClass::Special),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, AddressClass::Special),
    (Ipv6Addr::UNSPECIFIED, 128, AddressClass::Special),
];

/// Returns why an address isn't public; `None` if it is.
pub(crate) fn refused(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => refused_v4(address),
        IpAddr::V6(address) => refused_v6(address),
    }
}

fn refused_v4(address: Ipv4Addr) -> Option<AddressClass> {
    if METADATA_V4.contains(&address) {
        return Some(AddressClass::Metadata);
    }
    let in_network =
        |network: Ipv4Addr, bits: u32| (address.to_bits() ^ network.to_bits()) >> (32 - bits) == 0;
    NETWORKS_V4.iter().find(|(network, bits, _)| in_network(*network, *bits)).map(|(_, _, class)| *class)
}

fn refused_v6(address: Ipv6Addr) -> Option<AddressClass> {
    if METADATA_V6.contains(&address) {
        return Some(AddressClass::Metadata);
    }
    let in_network =
        |network: Ipv6Addr, bits: u32| (address.to_bits() ^ network.to_bits()) >> (128 - bits) == 0;
    let known = NETWORKS_V6.iter().find(|(network, bits, _)| in_network(*network, *bits));
    if let Some((_, _, class)) = known {
        return Some(*class);
    }
    if let Some(inner) = embedded(address) {
        return refused_v4(inner);
    }
    let public = in_network(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
    (!public).then_some(AddressClass::Special)
}

/// Returns the IPv4 address that packets to this address reach: mapped, compatible, NAT64 and 6to4 forms.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff | 0) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(of(g, h)),
        (0x2002, ..) => Some(of(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<AddressClass> {
        refused(text.parse().unwrap_or_else(|e| panic!("{text}: {e}")))
    }

    /// The first and the last address of each network are refused, their neighbours outside aren't.
    #[test]
    fn networks_end_where_they_should() {
        use AddressClass::{LinkLocal, Loopback, Multicast, Private, Special};
        let networks = [
            ("0.0.0.0", "0.255.255.255", Special, None, Some("1.0.0.0")),
            ("10.0.0.0", "10.255.255.255", Private, Some("9.255.255.255"), Some("11.0.0.0")),
            ("100.64.0.0", "100.127.255.255", Private, Some("100.63.255.255"), Some("100.128.0.0")),
            ("127.0.0.0", "127.255.255.255", Loopback, Some("126.255.255.255"), Some("128.0.0.0")),
            ("169.254.0.0", "169.254.255.255", LinkLocal, Some("169.253.255.255"), Some("169.255.0.0")),
            ("172.16.0.0", "172.31.255.255", Private, Some("172.15.255.255"), Some("172.32.0.0")),
            ("192.0.0.0", "192.0.0.255", Special, Some("191.255.255.255"), Some("192.0.1.0")),
            ("192.0.2.0", "192.0.2.255", Special, Some("192.0.1.255"), Some("192.0.3.0")),
            ("192.88.99.0", "192.88.99.255", Special, Some("192.88.98.255"), Some("192.88.100.0")),
            ("192.168.0.0", "192.168.255.255", Private, Some("192.167.255.255"), Some("192.169.0.0")),
            ("198.18.0.0", "198.19.255.255", Special, Some("198.17.255.255"), Some("198.20.0.0")),
            ("198.51.100.0", "198.51.100.255", Special, Some("198.51.99.255"), Some("198.51.101.0")),
            ("203.0.113.0", "203.0.113.255", Special, Some("203.0.112.255"), Some("203.0.114.0")),
            ("224.0.0.0", "239.255.255.255", Multicast, Some("223.255.255.255"), None),
            ("240.0.0.0", "255.255.255.255", Special, None, None),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private, None, None),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", LinkLocal, None, None),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private, None, None),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Multicast, None, None),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Special, None, Some("2001:200::")),
            (
                "2001:db8::",
                "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
                Special,
                Some("2001:db7::1"),
                Some("2001:db9::"),
            ),
            (
                "3fff::",
                "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
                Special,
                Some("3ffe::1"),
                Some("3fff:1000::"),
            ),
        ];
        for (first, last, class, before, after) in networks {
            assert_eq!((of(first), of(last)), (Some(class), Some(class)), "{first}");
            for outside in before.into_iter().chain(after) {
                assert_eq!(of(outside), None, "{outside}");
            }
        }
    }

    #[test]
    fn single_addresses_have_their_class() {
        assert_eq!(of("::1"), Some(AddressClass::Loopback));
        assert_eq!(of("::"), Some(AddressClass::Special));
        for refused in ["100::1", "64:ff9b:1::a00:1", "5f00::1", "4000::1", "1::", "8000::1", "fbff::1"] {
            assert_eq!(of(refused), Some(AddressClass::Special), "{refused}");
        }
        for public in ["1.1.1.1", "162.159.128.233", "2606:4700::6810:1", "2a00:1450::1", "2c0f::1"] {
            assert_eq!(of(public), None, "{public}");
        }
    }

    #[test]
    fn metadata_services_cannot_be_allowed() {
        let services = [
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
        ];
        for service in services {
            let class = of(service);
            assert_eq!(class, Some(AddressClass::Metadata), "{service}");
            assert!(!class.unwrap().can_be_allowed());
        }
    }

    /// An IPv4 address in any IPv6 form is judged as that IPv4 address.
    #[test]
    fn embedded_addresses_are_judged_by_what_they_reach() {
        let addresses = [
            "127.0.0.1",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.1.1",
            "192.168.1.1",
            "224.0.0.1",
            "203.0.113.9",
            "8.8.8.8",
        ];
        for text in addresses {
            let v4: Ipv4Addr = text.parse().unwrap();
            let [a, b, c, d] = v4.octets();
            let hex = format!("{a:02x}{b:02x}:{c:02x}{d:02x}");
            let forms = [
                format!("::ffff:{hex}"),
                format!("::ffff:0:{hex}"),
                format!("64:ff9b::{hex}"),
                format!("2002:{hex}::"),
                format!("2002:{hex}::1:2"),
                format!("::{hex}"),
            ];
            for form in forms {
                assert_eq!(of(&form), of(text), "{form} is {text}");
            }
        }
    }

    #[test]
    fn only_this_machine_and_private_networks_can_be_allowed() {
        for (text, allowed) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("192.168.0.7", true),
            ("fd12::1", true),
            ("100.64.0.1", true),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("224.0.0.1", false),
            ("0.0.0.0", false),
            ("::", false),
            ("203.0.113.1", false),
        ] {
            assert_eq!(of(text).unwrap().can_be_allowed(), allowed, "{text}");
        }
    }
}
