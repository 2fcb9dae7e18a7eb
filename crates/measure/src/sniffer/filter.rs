//! What the kernel is asked to pass over, as a program for its packet filter: what is neither TCP nor UDP, what is of
//! another port, and the loopback's second sight of every packet.
//!
//! Not the place where anything is decided about a connection. The machine is that of the kernel's
//! Documentation/networking/filter.rst; packets begin with their IP header, because the socket is a datagram's.

use socket2::SockFilter;

/// What no filter cuts off.
const WHOLE: u32 = 0x0004_0000;
const TCP: u32 = 6;
const UDP: u32 = 17;

/// The program: TCP and UDP, all of it or that from and to `port`.
pub(super) fn program(port: Option<u16>) -> Vec<SockFilter> {
    // A packet on the loopback is seen when it is sent and when it arrives: the second is kept.
    let mut program = vec![
        load_ancillary(libc::SKF_AD_PKTTYPE),
        skip_unless(u32::from(libc::PACKET_OUTGOING), 3),
        load_ancillary(libc::SKF_AD_HATYPE),
        skip_unless(u32::from(libc::ARPHRD_LOOPBACK), 1),
        verdict(0),
    ];
    let (four, six) = match port {
        Some(port) => (over_ipv4(u32::from(port)), over_ipv6(u32::from(port))),
        None => {
            let four = vec![load_byte(9), skip_if(TCP, 2), skip_if(UDP, 1), verdict(0), verdict(WHOLE)];
            (four, vec![verdict(WHOLE)])
        }
    };
    program.push(load_ancillary(libc::SKF_AD_PROTOCOL));
    program.push(skip_unless(0x0800, length(&four)));
    program.extend(four);
    program.push(skip_unless(0x86dd, length(&six)));
    program.extend(six);
    program.push(verdict(0));
    program
}

/// Fragments but the first have no ports, and are passed over.
fn over_ipv4(port: u32) -> Vec<SockFilter> {
    const FRAGMENT_OFFSET: u32 = 0x1fff;
    vec![
        load_byte(9),
        skip_if(TCP, 1),
        skip_unless(UDP, 7),
        load_half(6),
        SockFilter::new(code(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K), 5, 0, FRAGMENT_OFFSET),
        SockFilter::new(code(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH), 0, 0, 0),
        load_half_behind(0),
        skip_if(port, 3),
        load_half_behind(2),
        skip_if(port, 1),
        verdict(0),
        verdict(WHOLE),
    ]
}

/// Behind extension headers no port is looked for: neither has any there on any network we know of.
fn over_ipv6(port: u32) -> Vec<SockFilter> {
    vec![
        load_byte(6),
        skip_if(TCP, 1),
        skip_unless(UDP, 4),
        load_half(40),
        skip_if(port, 3),
        load_half(42),
        skip_if(port, 1),
        verdict(0),
        verdict(WHOLE),
    ]
}

fn load_ancillary(what: libc::c_int) -> SockFilter {
    // The kernel's numbers for these are negative offsets.
    let offset = (libc::SKF_AD_OFF + what).cast_unsigned();
    SockFilter::new(code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), 0, 0, offset)
}

fn load_byte(at: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS), 0, 0, at)
}

fn load_half(at: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS), 0, 0, at)
}

/// At an offset from the end of the IPv4 header.
fn load_half_behind(at: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_LD | libc::BPF_H | libc::BPF_IND), 0, 0, at)
}

fn skip_if(value: u32, count: u8) -> SockFilter {
    SockFilter::new(code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K), count, 0, value)
}

fn skip_unless(value: u32, count: u8) -> SockFilter {
    SockFilter::new(code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K), 0, count, value)
}

/// So many bytes of the packet are kept; none, and it is passed over.
fn verdict(bytes: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_RET | libc::BPF_K), 0, 0, bytes)
}

fn code(bits: u32) -> u16 {
    u16::try_from(bits).expect("the machine's instructions have 16 bits")
}

fn length(program: &[SockFilter]) -> u8 {
    u8::try_from(program.len()).expect("the parts are a dozen instructions long")
}
