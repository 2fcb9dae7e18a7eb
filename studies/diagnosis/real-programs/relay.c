/* A path between two network interfaces: one-way delay, rate, queue, losses and MTU holes.
 *
 *   relay IFACE_CLIENT IFACE_SERVER TAP LOG [name=value ...]
 *
 * Frames from one interface leave by the other one.  Half-way they also appear on the TAP device, for a capture there.
 *
 *   delay_us=N        one-way delay, half of it on each side of the TAP
 *   jitter_us=N       additional delay, uniform in 0..N, without reordering
 *   side=server       the lossy, slow segment is between the TAP and the server (default), or `client`
 *   rate=BITS         rate of that segment in each direction (0: unlimited), queue=BYTES its queue
 *   loss_up=P loss_down=P seed=N   random loss of IPv4 packets
 *   drop=DIR:syn:N    drops the first N packets with SYN (up: SYN, down: SYN/ACK)
 *   drop=DIR:seq:B:N  drops the first N packets that contain byte B (from 0) of the stream
 *   drop=DIR:ack:B:N  drops the first N packets without data that acknowledge byte B or more
 *   cut=DIR:seq:B     from the packet with byte B on, nothing passes in either direction
 *   mtu=N icmp=0|1    drops IPv4 packets of more than N bytes, with ICMP "fragmentation needed" or without
 *
 * Frames that leave 2 ms late or more, because the host is busy, are reported on stderr (`late US`).
 *
 * The log has a line for every TCP packet at the impaired segment:
 * time_us,dir,event,client_port,first_byte,payload,flags,queue_us
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

enum { UP, DOWN };
enum { RULE_SYN, RULE_SEQ, RULE_ACK };

struct frame {
    struct frame *next;
    int64_t due; /* monotonic, ns */
    int length;
    uint8_t bytes[];
};

struct fifo {
    struct frame *first, **last;
};

struct rule {
    int dir, kind, cut;
    int64_t byte;
    long times;
};

struct tcp {
    int is_tcp, ip_length, payload, flags;
    uint16_t client_port;
    uint32_t seq, ack;
    int64_t first; /* offset of the first payload byte in the stream, -1 unknown */
    int64_t acked; /* offset acknowledged, -1 unknown */
};

static int interfaces[2], tap;
static FILE *logfile;
static int64_t delay_ns, jitter_ns, rate, queue_bytes = 1 << 20, busy[2];
static int impaired_by_server = 1, mtu, send_icmp, cut;
static double loss[2];
static uint64_t random_state = 88172645463325252ull;
static struct rule rules[16];
static int rule_count;
static struct fifo stages[2][2]; /* [dir][before or after the TAP] */
static uint32_t initial[2][65536];
static uint8_t known[2][65536];

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static double uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) / 9007199254740992.0;
}

static uint16_t get16(const uint8_t *p) { return p[0] << 8 | p[1]; }
static uint32_t get32(const uint8_t *p) { return (uint32_t)get16(p) << 16 | get16(p + 2); }
static void put16(uint8_t *p, uint16_t v) { p[0] = v >> 8; p[1] = v; }
static void put32(uint8_t *p, uint32_t v) { put16(p, v >> 16); put16(p + 2, v); }

static uint32_t sum(const uint8_t *p, int length, uint32_t start)
{
    for (; length > 1; p += 2, length -= 2)
        start += get16(p);
    return length ? start + (p[0] << 8) : start;
}

static uint16_t fold(uint32_t s)
{
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return ~s;
}

/* Sets the checksums of an IPv4 packet with TCP. */
static void checksums(uint8_t *ip, int length)
{
    int header = (ip[0] & 15) * 4;
    uint8_t *tcp = ip + header;
    put16(ip + 10, 0);
    put16(ip + 10, fold(sum(ip, header, 0)));
    put16(tcp + 16, 0);
    put16(tcp + 16, fold(sum(tcp, length - header, sum(ip + 12, 8, 6 + length - header))));
}

static void push(struct fifo *f, const uint8_t *bytes, int length, int64_t due)
{
    struct frame *frame = malloc(sizeof *frame + length);
    memcpy(frame->bytes, bytes, length);
    frame->length = length;
    frame->due = due;
    frame->next = NULL;
    if (!f->first)
        f->last = &f->first;
    *f->last = frame;
    f->last = &frame->next;
}

static struct tcp parse(const uint8_t *frame, int length, int dir)
{
    struct tcp t = {0};
    const uint8_t *ip = frame + 14, *h;
    t.first = t.acked = -1;
    if (length < 34 || get16(frame + 12) != 0x0800)
        return t;
    t.ip_length = get16(ip + 2);
    if (ip[9] != 6 || t.ip_length > length - 14)
        return t;
    h = ip + (ip[0] & 15) * 4;
    t.is_tcp = 1;
    t.client_port = get16(dir == UP ? h : h + 2);
    t.seq = get32(h + 4);
    t.ack = get32(h + 8);
    t.flags = h[13];
    t.payload = t.ip_length - (ip[0] & 15) * 4 - (h[12] >> 4) * 4;
    if (t.flags & 2) {
        initial[dir][t.client_port] = t.seq + 1;
        known[dir][t.client_port] = 1;
    } else if (known[dir][t.client_port]) {
        t.first = (uint32_t)(t.seq - initial[dir][t.client_port]);
    }
    if (known[!dir][t.client_port] && t.flags & 16)
        t.acked = (uint32_t)(t.ack - initial[!dir][t.client_port]);
    return t;
}

static int rule_applies(const struct rule *r, const struct tcp *t, int dir)
{
    if (!t->is_tcp || r->dir != dir || r->times <= 0)
        return 0;
    if (r->kind == RULE_SYN)
        return t->flags & 2;
    if (r->kind == RULE_SEQ)
        return t->payload > 0 && t->first >= 0 && t->first <= r->byte && r->byte < t->first + t->payload;
    return t->payload == 0 && !(t->flags & 7) && t->acked >= r->byte;
}

static void icmp_too_big(const uint8_t *frame, int dir)
{
    uint8_t reply[14 + 20 + 8 + 28] = {0}, *ip = reply + 14, *icmp = ip + 20;
    memcpy(reply, frame + 6, 6);
    memcpy(reply + 6, frame, 6);
    put16(reply + 12, 0x0800);
    ip[0] = 0x45;
    put16(ip + 2, 56);
    ip[8] = 64;
    ip[9] = 1;
    memcpy(ip + 12, frame + 30, 4);
    ip[15] = 254; /* a router of the same network */
    memcpy(ip + 16, frame + 26, 4);
    put16(ip + 10, fold(sum(ip, 20, 0)));
    icmp[0] = 3;
    icmp[1] = 4;
    put16(icmp + 6, mtu);
    memcpy(icmp + 8, frame + 14, 28);
    put16(icmp + 2, fold(sum(icmp, 36, 0)));
    /* The router is where the TAP is: the reply has half the way back. */
    push(&stages[!dir][1], reply, sizeof reply, now_ns(CLOCK_MONOTONIC) + delay_ns / 2);
}

static void note(const struct tcp *t, int dir, const char *event, int64_t queued)
{
    if (t->is_tcp)
        fprintf(logfile, "%lld,%s,%s,%d,%lld,%d,%d,%lld\n", (long long)(now_ns(CLOCK_REALTIME) / 1000), dir == UP ? "up" : "down",
                event, t->client_port, (long long)t->first, t->payload, t->flags, (long long)(queued / 1000));
}

/* Passes a frame into a stage of its direction, through the impaired segment if it is there. */
static void enter(int dir, int stage, const uint8_t *frame, int length)
{
    int64_t now = now_ns(CLOCK_MONOTONIC), start = now, due;
    static int64_t last[2][2];
    int impaired = (dir == UP) == (stage == 1) ? impaired_by_server : !impaired_by_server;
    if (impaired) {
        struct tcp t = parse(frame, length, dir);
        const char *reason = cut ? "cut" : NULL;
        if (!reason && mtu && t.ip_length > mtu) {
            reason = "mtu";
            if (send_icmp)
                icmp_too_big(frame, dir);
        }
        for (int i = 0; !reason && i < rule_count; i++)
            if (rule_applies(&rules[i], &t, dir)) {
                rules[i].times--;
                reason = rules[i].cut ? "cut" : "rule";
                cut |= rules[i].cut;
            }
        if (!reason && t.ip_length && uniform() < loss[dir])
            reason = "random";
        if (!reason && rate) {
            start = busy[dir] > now ? busy[dir] : now;
            if ((start - now) / 1e9 * rate / 8 + length > queue_bytes)
                reason = "queue";
            else
                start = busy[dir] = start + (int64_t)(length * 8e9 / rate);
        }
        if (reason) {
            note(&t, dir, reason, 0);
            return;
        }
        note(&t, dir, "pass", start - now);
    }
    due = start + delay_ns / 2 + (stage == 1 && jitter_ns ? (int64_t)(uniform() * jitter_ns) : 0);
    if (due < last[dir][stage])
        due = last[dir][stage];
    last[dir][stage] = due;
    push(&stages[dir][stage], frame, length, due);
}

/* Enters a frame as packets of the wire: segments what the kernel left to the network card. */
static void arrive(int dir, const struct virtio_net_hdr *h, uint8_t *frame, int length)
{
    uint8_t *ip = frame + 14, packet[2048];
    int tcp = length >= 54 && get16(frame + 12) == 0x0800 && ip[9] == 6;
    if (tcp && h->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        int ip_header = (ip[0] & 15) * 4, header = 14 + ip_header + (frame[14 + ip_header + 12] >> 4) * 4;
        uint8_t *t = packet + 14 + ip_header;
        for (int at = header, i = 0; at < length; at += h->gso_size, i++) {
            int payload = length - at < h->gso_size ? length - at : h->gso_size;
            memcpy(packet, frame, header);
            memcpy(packet + header, frame + at, payload);
            put16(packet + 16, header - 14 + payload);
            put16(packet + 18, get16(ip + 4) + i);
            put32(t + 4, get32(frame + 14 + ip_header + 4) + at - header);
            if (at + payload < length)
                t[13] &= ~9; /* FIN and PSH belong to the last one */
            checksums(packet + 14, header - 14 + payload);
            enter(dir, 0, packet, header + payload);
        }
        return;
    }
    if (tcp && h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        checksums(ip, get16(ip + 2));
    enter(dir, 0, frame, length);
}

static int64_t latest; /* the most that a frame was late, because this program did not run, ns */

static void transmit(int dir, const struct frame *f)
{
    static uint8_t buffer[70000];
    memset(buffer, 0, sizeof(struct virtio_net_hdr));
    memcpy(buffer + sizeof(struct virtio_net_hdr), f->bytes, f->length);
    if (send(interfaces[!dir], buffer, sizeof(struct virtio_net_hdr) + f->length, 0) < 0)
        fprintf(stderr, "relay: send of %d bytes: %s\n", f->length, strerror(errno));
}

static void option(const char *arg)
{
    struct rule r = {0};
    char dir[8], kind[8];
    long long byte = 0, times = 1;
    const char *value = strchr(arg, '=');
    if (!value++)
        exit(fprintf(stderr, "relay: %s has no value\n", arg));
    if (!strncmp(arg, "delay_us=", 9)) delay_ns = atoll(value) * 1000;
    else if (!strncmp(arg, "jitter_us=", 10)) jitter_ns = atoll(value) * 1000;
    else if (!strncmp(arg, "side=", 5)) impaired_by_server = !strcmp(value, "server");
    else if (!strncmp(arg, "rate=", 5)) rate = atoll(value);
    else if (!strncmp(arg, "queue=", 6)) queue_bytes = atoll(value);
    else if (!strncmp(arg, "loss_up=", 8)) loss[UP] = atof(value);
    else if (!strncmp(arg, "loss_down=", 10)) loss[DOWN] = atof(value);
    else if (!strncmp(arg, "seed=", 5)) random_state ^= atoll(value) * 0x9e3779b97f4a7c15ull;
    else if (!strncmp(arg, "mtu=", 4)) mtu = atoi(value);
    else if (!strncmp(arg, "icmp=", 5)) send_icmp = atoi(value);
    else if (!strncmp(arg, "drop=", 5) || !strncmp(arg, "cut=", 4)) {
        if (sscanf(value, "%7[^:]:%7[^:]:%lld:%lld", dir, kind, &byte, &times) < 3)
            exit(fprintf(stderr, "relay: %s is not DIR:KIND:NUMBER[:TIMES]\n", arg));
        r.dir = strcmp(dir, "up") ? DOWN : UP;
        r.kind = !strcmp(kind, "syn") ? RULE_SYN : !strcmp(kind, "seq") ? RULE_SEQ : RULE_ACK;
        r.byte = byte;
        r.times = r.kind == RULE_SYN ? byte : times;
        r.cut = arg[0] == 'c';
        rules[rule_count++ % 16] = r;
    } else
        exit(fprintf(stderr, "relay: unknown option %s\n", arg));
}

static int packet_socket(const char *name)
{
    int one = 1, size = 8 << 20, fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(name)};
    struct packet_mreq m = {.mr_ifindex = a.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) || bind(fd, (void *)&a, sizeof a) ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one)) {
        perror(name);
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    return fd;
}

static int tap_device(const char *name)
{
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    strncpy(r.ifr_name, name, IFNAMSIZ - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r)) {
        perror(name);
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    static uint8_t buffer[70000];
    if (argc < 5)
        return fprintf(stderr, "usage: relay IFACE_CLIENT IFACE_SERVER TAP LOG [name=value ...]\n"), 1;
    for (int i = 5; i < argc; i++)
        option(argv[i]);
    interfaces[0] = packet_socket(argv[1]);
    interfaces[1] = packet_socket(argv[2]);
    tap = tap_device(argv[3]);
    logfile = fopen(argv[4], "w");
    if (!logfile)
        return perror(argv[4]), 1;
    setvbuf(logfile, NULL, _IOLBF, 0);
    prctl(PR_SET_TIMERSLACK, 1);
    struct sched_param priority = {.sched_priority = 50};
    if (sched_setscheduler(0, SCHED_FIFO, &priority))
        perror("sched_setscheduler");
    for (;;) {
        struct pollfd polled[3] = {{interfaces[0], POLLIN, 0}, {interfaces[1], POLLIN, 0}, {tap, POLLIN, 0}};
        int64_t next = INT64_MAX, now = now_ns(CLOCK_MONOTONIC);
        struct timespec wait = {0};
        for (int i = 0; i < 4; i++) {
            struct frame *f = stages[i / 2][i % 2].first;
            if (f && f->due < next)
                next = f->due;
        }
        if (next != INT64_MAX && next > now) {
            wait.tv_sec = (next - now) / 1000000000;
            wait.tv_nsec = (next - now) % 1000000000;
        }
        if (ppoll(polled, 3, next == INT64_MAX ? NULL : &wait, NULL) < 0 && errno != EINTR)
            return perror("ppoll"), 1;
        for (int dir = 0; dir < 2; dir++)
            while (polled[dir].revents) {
                int got = recv(interfaces[dir], buffer, sizeof buffer, MSG_DONTWAIT);
                if (got < (int)sizeof(struct virtio_net_hdr))
                    break;
                arrive(dir, (void *)buffer, buffer + sizeof(struct virtio_net_hdr), got - sizeof(struct virtio_net_hdr));
            }
        if (polled[2].revents && read(tap, buffer, sizeof buffer) < 0 && errno != EAGAIN)
            polled[2].revents = 0; /* what the router's kernel sends there is not of interest */
        now = now_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < 4; i++) {
            int dir = i / 2, stage = i % 2;
            struct fifo *q = &stages[dir][stage];
            while (q->first && q->first->due <= now) {
                struct frame *f = q->first;
                q->first = f->next;
                if (now - f->due > latest) {
                    latest = now - f->due;
                    if (latest > 2000000)
                        fprintf(stderr, "late %lld\n", (long long)latest / 1000);
                }
                if (stage == 0) {
                    if (write(tap, f->bytes, f->length) < 0)
                        fprintf(stderr, "relay: tap: %s\n", strerror(errno));
                    enter(dir, 1, f->bytes, f->length);
                } else
                    transmit(dir, f);
                free(f);
            }
        }
    }
}
