// link DELAY_US DOWN_BPS UP_BPS PACKETS: a link between the namespaces `elsewhere-client` and `elsewhere-server` (interfaces `link`):
// each direction with a rate, a queue that drops its tail, and half the round trip.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 16384, LARGEST = 1600 };

struct packet { long long leaves, arrives; int size; char bytes[LARGEST]; };
struct direction { struct packet *packets; int first, end, in, out; long long free, rate; };

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int tun(const char *namespace) {
    char path[64];
    snprintf(path, sizeof path, "/var/run/netns/%s", namespace);
    if (setns(open(path, O_RDONLY), CLONE_NEWNET)) { perror(namespace); exit(1); }
    int file = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    strcpy(request.ifr_name, "link");
    if (ioctl(file, TUNSETIFF, &request)) { perror("tun"); exit(1); }
    return file;
}

static void receive(struct direction *way, long long delay, int limit) {
    for (;;) {
        struct packet *packet = &way->packets[way->end];
        packet->size = read(way->in, packet->bytes, LARGEST);
        if (packet->size <= 0) return;
        long long time = now();
        int waiting = 0;
        for (int at = way->end; at != way->first && waiting <= limit; waiting++) {
            at = (at + SLOTS - 1) % SLOTS;
            if (way->packets[at].leaves <= time) break;
        }
        if (waiting >= limit || (way->end + 1) % SLOTS == way->first) continue;
        way->free = (way->free > time ? way->free : time) + packet->size * 8000000000LL / way->rate;
        packet->leaves = way->free;
        packet->arrives = way->free + delay;
        way->end = (way->end + 1) % SLOTS;
    }
}

static void deliver(struct direction *way) {
    for (; way->first != way->end && way->packets[way->first].arrives <= now(); way->first = (way->first + 1) % SLOTS) {
        struct packet *packet = &way->packets[way->first];
        // Refused while the other end is down.
        if (write(way->out, packet->bytes, packet->size) < 0) continue;
    }
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    long long delay = atoll(arguments[1]) * 1000;
    int client = tun("elsewhere-client"), server = tun("elsewhere-server");
    struct direction ways[2] = { { .in = server, .out = client, .rate = atoll(arguments[2]) },
                                 { .in = client, .out = server, .rate = atoll(arguments[3]) } };
    for (int way = 0; way < 2; way++) ways[way].packets = calloc(SLOTS, sizeof(struct packet));
    struct sched_param real_time = { .sched_priority = 50 };
    sched_setscheduler(0, SCHED_FIFO, &real_time);
    prctl(PR_SET_TIMERSLACK, 1);
    puts("up");
    fflush(stdout);
    for (;;) {
        long long next = now() + 100000000;
        for (int way = 0; way < 2; way++) {
            deliver(&ways[way]);
            receive(&ways[way], delay, atoi(arguments[4]));
            struct packet *first = &ways[way].packets[ways[way].first];
            if (ways[way].first != ways[way].end && first->arrives < next) next = first->arrives;
        }
        long long rest = next - now();
        struct timespec wait = { rest / 1000000000, rest % 1000000000 };
        struct pollfd inputs[2] = { { client, POLLIN, 0 }, { server, POLLIN, 0 } };
        if (rest > 0) ppoll(inputs, 2, &wait, NULL);
    }
}
