//! Address arithmetic.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::eval::value::Val;
use super::args::{int, text};
use super::{Context, Function, MANY, Outcome};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("cidrhost", (2, 2), cidrhost),
    Function::new("cidrnetmask", (1, 1), |_, args| {
        let net = Net::parse(&text(args, 0)?)?;
        if net.width != 32 {
            return Err("only IPv4 has netmasks".into());
        }
        Ok(Val::text(net.address(net.mask())))
    }),
    Function::new("cidrsubnet", (3, 3), |_, args| {
        let net = Net::parse(&text(args, 0)?)?;
        Ok(Val::text(
            net.subnet(int(args, 1)?, int(args, 2)?)?.to_string(),
        ))
    }),
    Function::new("cidrsubnets", (1, MANY), cidrsubnets),
];

/// A network: its address as a number, its prefix, and how many bits its kind has.
#[derive(Clone, Copy)]
struct Net {
    base: u128,
    prefix: u32,
    width: u32,
}

impl Net {
    fn parse(text: &str) -> Result<Net, String> {
        let bad = || format!("\"{text}\" is no network such as \"10.0.0.0/8\"");
        let (address, prefix) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let prefix: u32 = prefix.parse().map_err(|_| bad())?;
        let (base, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        if prefix > width {
            return Err(bad());
        }
        let net = Net {
            base,
            prefix,
            width,
        };
        Ok(Net {
            base: base & net.mask(),
            ..net
        })
    }

    /// The highest number of the kind.
    fn ones(self) -> u128 {
        u128::MAX >> (128 - self.width)
    }

    fn mask(self) -> u128 {
        let host = u128::MAX
            .checked_shr(128 - (self.width - self.prefix))
            .unwrap_or(0);
        self.ones() & !host
    }

    fn address(self, number: u128) -> String {
        match self.width {
            32 => Ipv4Addr::from_bits(number as u32).to_string(),
            _ => Ipv6Addr::from_bits(number).to_string(),
        }
    }

    /// The subnet of a number whose prefix is so much longer.
    fn subnet(self, longer: i64, number: i64) -> Result<Net, String> {
        let longer = u32::try_from(longer).map_err(|_| "the prefix cannot become shorter")?;
        let prefix = self
            .prefix
            .checked_add(longer)
            .filter(|prefix| *prefix <= self.width);
        let prefix = prefix.ok_or_else(|| {
            format!(
                "{longer} more bits do not fit after a prefix of {}",
                self.prefix
            )
        })?;
        let number = u128::try_from(number).map_err(|_| "the number of the subnet is negative")?;
        if number.checked_shr(longer).unwrap_or(0) != 0 {
            return Err(format!("{longer} bits have no subnet {number}"));
        }
        let shifted = number.checked_shl(self.width - prefix).unwrap_or(0);
        Ok(Net {
            base: self.base | shifted,
            prefix,
            width: self.width,
        })
    }
}

impl core::fmt::Display for Net {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.address(self.base), self.prefix)
    }
}

fn cidrhost(_: &Context<'_>, args: &[Val]) -> Outcome {
    let net = Net::parse(&text(args, 0)?)?;
    let number = int(args, 1)?;
    let last = net.ones() & !net.mask();
    let distance = u128::from(number.unsigned_abs());
    // A negative number counts from the end.
    let host = if number < 0 {
        last.checked_sub(distance - 1)
    } else {
        Some(distance).filter(|host| *host <= last)
    };
    let host = host.ok_or_else(|| format!("{net} has no host {number}"))?;
    Ok(Val::text(net.address(net.base | host)))
}

/// Subnets one after the other, each at the next place where its size fits.
fn cidrsubnets(_: &Context<'_>, args: &[Val]) -> Outcome {
    let net = Net::parse(&text(args, 0)?)?;
    let full = || format!("the subnets do not fit into {net}");
    let mut next = net.base;
    let mut subnets = Vec::new();
    for at in 1..args.len() {
        let size = net.subnet(int(args, at)?, 0)?;
        let step = 1_u128
            .checked_shl(size.width - size.prefix)
            .ok_or_else(full)?;
        let start = next.checked_next_multiple_of(step).ok_or_else(full)?;
        if start & net.mask() != net.base {
            return Err(full().into());
        }
        subnets.push(Val::text(
            Net {
                base: start,
                ..size
            }
            .to_string(),
        ));
        next = start.saturating_add(step);
    }
    Ok(Val::list(subnets)?)
}
