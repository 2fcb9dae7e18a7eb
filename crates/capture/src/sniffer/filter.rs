//! Program of the kernel's packet filter (BPF). Drops packets that are neither TCP nor UDP, packets of
//! other ports, and the second copy of every packet on the loopback.
//!
//! No decision about connections is made here. The filter's virtual machine is described in the kernel's
//! Documentation/networking/filter.rst. Packets begin with their IP header, because the socket is of type SOCK_DGRAM.

use socket2::SockFilter;

/// Capture length that truncates no packet.
const WHOLE: u32 = 0x0004_0000;
const TCP: u32 = 6;
const UDP: u32 = 17;

/// Returns the program: all TCP and UDP, or only from and to `port`.
pub(super) fn program(port: Option<u16>) -> Vec<SockFilter> {
    // A packet on the loopback appears when it is sent and when it arrives: the second one is captured.
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

/// Fragments other than the first have no ports, and are dropped.
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

/// Ports behind extension headers are not matched: TCP and UDP rarely have any.
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

fn load_ancillary(field: libc::c_int) -> SockFilter {
    // The kernel's numbers for these are negative offsets.
    let offset = (libc::SKF_AD_OFF + field).cast_unsigned();
    SockFilter::new(code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), 0, 0, offset)
}

fn load_byte(at: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS), 0, 0, at)
}

fn load_half(at: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS), 0, 0, at)
}

/// Loads at an offset from the end of the IPv4 header.
fn load_half_behind(at: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_LD | libc::BPF_H | libc::BPF_IND), 0, 0, at)
}

fn skip_if(value: u32, count: u8) -> SockFilter {
    SockFilter::new(code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K), count, 0, value)
}

fn skip_unless(value: u32, count: u8) -> SockFilter {
    SockFilter::new(code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K), 0, count, value)
}

/// Returns this number of bytes of the packet; 0 drops it.
fn verdict(bytes: u32) -> SockFilter {
    SockFilter::new(code(libc::BPF_RET | libc::BPF_K), 0, 0, bytes)
}

fn code(bits: u32) -> u16 {
    u16::try_from(bits).expect("BPF opcodes have 16 bits")
}

fn length(program: &[SockFilter]) -> u8 {
    u8::try_from(program.len()).expect("the parts are a dozen instructions long")
}
