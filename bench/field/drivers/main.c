/* Measures one messaging system through one client library; prints one JSON object.
 *
 *   create               create the topic
 *   produce              send for a time, or a number of messages, until all are acknowledged
 *   consume              read a number of messages with each of N consumers
 *   latency              send at a fixed rate and record how late each message arrives
 *   pause                send messages one by one at a fixed rate, each acknowledged before the
 *                        next, and record the longest time between two acknowledgements
 *
 * An open loop keeps the rate: message n is due at start + n / rate whatever became of those before
 * it, and its latency counts from when it was due. A system that stalls is thus charged for
 * everything that it delayed (no coordinated omission). */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAYLOADS 16
#define TICK_NS 100000ULL /* waking for each of 50,000 messages a second would limit the sender */
#define CONSUMERS_MAX 64
#define WARM_UP_SHARE 0.1

/* A histogram like HdrHistogram: exact below 64 ns, then 32 buckets for each power of two, so
 * that every value is kept to within 3 %. */
#define SUB_BITS 5
#define SUB (1 << SUB_BITS)
#define BUCKETS (64 * SUB)
static uint64_t buckets[BUCKETS];

static int bucket_of(uint64_t value) {
    if (value < 2 * SUB) return (int)value;
    int shift = 63 - __builtin_clzll(value) - SUB_BITS;
    return (shift + 1) * SUB + (int)((value >> shift) - SUB);
}

static uint64_t bucket_top(int bucket) {
    if (bucket < 2 * SUB) return (uint64_t)bucket;
    int shift = bucket / SUB - 1;
    return (((uint64_t)(bucket % SUB + SUB) + 1) << shift) - 1;
}

static void sleep_until(uint64_t when) {
    if (when <= now_ns()) return;
    struct timespec t = {(time_t)(when / 1000000000ULL), (long)(when % 1000000000ULL)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

/* Hexadecimal digits: they pack to about half, as records of text do. */
static char *payload(long size, unsigned seed) {
    char *data = malloc((size_t)size + 1);
    uint32_t state = 12345u + seed * 7919u;
    for (long i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = "0123456789abcdef"[state >> 28];
    }
    return data;
}

static void usage_json(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("\"client_cpu_seconds\": %.4f, \"client\": \"%s\"", cpu, driver_client());
}

static uint64_t due_at(const options *o, uint64_t start, long number) {
    return start + (uint64_t)((double)number * 1e9 / o->rate);
}

/* Flush and sleep, unless a message is already due. A sleep lasts at least a tick: at high rates a
 * few messages are then due at once, all of them late by less than a tick, which counts. */
static void await_due(void *producer, uint64_t due) {
    uint64_t now = now_ns();
    if (due <= now) return;
    producer_push(producer);
    sleep_until(due > now + TICK_NS ? due : now + TICK_NS);
}

static void produce(const options *o) {
    char *pool[PAYLOADS];
    for (unsigned i = 0; i < PAYLOADS; i++) pool[i] = payload(o->size, i);
    void *producer = producer_open(o);
    uint64_t start = now_ns(), end = start + (uint64_t)(o->seconds * 1e9);
    long sent = 0;
    while (sent < o->count && ((sent & 15) || now_ns() < end)) {
        if (o->rate > 0) await_due(producer, due_at(o, start, sent));
        producer_send(producer, pool[sent % PAYLOADS], (size_t)o->size, 0);
        sent++;
    }
    producer_flush(producer);
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"messages\": %ld, \"seconds\": %.6f, ", sent, seconds);
    usage_json();
    printf("}\n");
}

typedef struct {
    const options *o;
    void *consumer;
    const uint64_t *sums; /* of everything that a producer sends */
    long read;
    long first_count; /* messages of the first poll */
    uint64_t first;   /* when it ended: finding the position is not reading */
} reading;

/* Add up all bytes of a message: real consumers read them, too. */
static uint64_t sum_of(const char *data, size_t size) {
    uint64_t sum = 0, word;
    for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
        memcpy(&word, data, sizeof word);
        sum += word;
    }
    for (; size; data++, size--) sum += (uint8_t)*data;
    return sum;
}

static void look_at(const char *data, size_t size, void *context) {
    reading *r = context;
    uint64_t sum = sum_of(data, size);
    unsigned known = 0;
    while (known < PAYLOADS && r->sums[(r->read + known) % PAYLOADS] != sum) known++;
    if (known == PAYLOADS || (long)size != r->o->size) fail("a message differs from what was sent");
    r->read++;
}

static void *read_all(void *context) {
    reading *r = context;
    uint64_t end = now_ns() + (uint64_t)(r->o->seconds * 1e9);
    while (r->read < r->o->count && now_ns() < end) {
        consumer_poll(r->consumer, look_at, r);
        if (!r->first && r->read) {
            r->first = now_ns();
            r->first_count = r->read;
        }
    }
    return NULL;
}

/* The clock starts at the end of the first poll, whose messages do not count: a reply of Redis has
 * many messages, and takes a while before any of them is seen. If those are most of it, or a tail
 * is read, everything counts from before the consumers opened. */
static void consume(const options *o) {
    if (o->consumers > CONSUMERS_MAX) fail("at most %d consumers", CONSUMERS_MAX);
    reading all[CONSUMERS_MAX] = {0};
    pthread_t threads[CONSUMERS_MAX];
    uint64_t sums[PAYLOADS], start = now_ns(), first = UINT64_MAX;
    for (unsigned i = 0; i < PAYLOADS; i++) sums[i] = sum_of(payload(o->size, i), (size_t)o->size);
    for (int i = 0; i < o->consumers; i++)
        all[i] = (reading){.o = o, .consumer = consumer_open(o), .sums = sums};
    for (int i = 0; i < o->consumers; i++) pthread_create(&threads[i], NULL, read_all, &all[i]);
    for (int i = 0; i < o->consumers; i++) pthread_join(threads[i], NULL);
    uint64_t end = now_ns();
    long read = 0, first_count = 0;
    for (int i = 0; i < o->consumers; i++) {
        if (all[i].read < o->count) fail("%ld of %ld messages arrived", all[i].read, o->count);
        if (all[i].first < first) first = all[i].first;
        first_count += all[i].first_count;
        read += all[i].read;
    }
    double first_seconds = (double)(first - start) / 1e9;
    if (o->tail || 2 * first_count > read) {
        first = start;
        first_count = 0;
    }
    printf("{\"messages\": %ld, \"read\": %ld, \"seconds\": %.6f, \"first_seconds\": %.6f, ",
           read - first_count, read, (double)(end - first) / 1e9, first_seconds);
    usage_json();
    printf("}\n");
}

typedef struct {
    long seen;
    uint64_t count_from;
} arrivals;

static void note(const char *data, size_t size, void *context) {
    arrivals *a = context;
    uint64_t due, now = now_ns();
    if (size < sizeof due) fail("a message is too short for its time");
    memcpy(&due, data, sizeof due);
    if (due >= a->count_from) buckets[bucket_of(now - due)]++;
    a->seen++;
}

typedef struct {
    const options *o;
    void *producer;
    uint64_t start;
    long count;
} sending;

static void *send_paced(void *context) {
    sending *s = context;
    char *data = payload(s->o->size, 1);
    for (long i = 0; i < s->count; i++) {
        uint64_t due = due_at(s->o, s->start, i);
        await_due(s->producer, due);
        memcpy(data, &due, sizeof due);
        producer_send(s->producer, data, (size_t)s->o->size, 1);
    }
    producer_flush(s->producer);
    return NULL;
}

static void latency(const options *o) {
    long count = (long)(o->rate * o->seconds), warm_up = (long)(WARM_UP_SHARE * (double)count);
    void *consumer = consumer_open(o);
    sending s = {.o = o, .producer = producer_open(o), .count = count + warm_up};
    arrivals a = {0};
    s.start = now_ns() + 300000000ULL; /* time for connections to open */
    a.count_from = s.start + (uint64_t)((double)warm_up * 1e9 / o->rate);
    uint64_t give_up = s.start + (uint64_t)(o->seconds * 1e9) + 60000000000ULL;
    pthread_t thread;
    pthread_create(&thread, NULL, send_paced, &s);
    while (a.seen < s.count && now_ns() < give_up) consumer_poll(consumer, note, &a);
    if (a.seen < s.count) fail("%ld of %ld messages arrived", a.seen, s.count);
    pthread_join(thread, NULL);
    printf("{\"messages\": %ld, \"seconds\": %.6f, \"histogram_ns\": [", count, o->seconds);
    const char *comma = "";
    for (int i = 0; i < BUCKETS; i++)
        if (buckets[i]) {
            printf("%s[%llu, %llu]", comma, (unsigned long long)bucket_top(i),
                   (unsigned long long)buckets[i]);
            comma = ", ";
        }
    printf("], ");
    usage_json();
    printf("}\n");
}

__attribute__((weak)) void producer_put(void *producer, const char *data, size_t size) {
    producer_send(producer, data, size, 1);
    producer_flush(producer);
}

static void pause_between(const options *o) {
    char *data = payload(o->size, 1);
    void *producer = producer_open(o);
    producer_put(producer, data, (size_t)o->size); /* finding the leader is not a pause */
    uint64_t start = now_ns(), end = start + (uint64_t)(o->seconds * 1e9);
    uint64_t last = start, longest = 0;
    long sent = 0;
    for (; last < end; sent++) {
        producer_put(producer, data, (size_t)o->size);
        uint64_t now = now_ns();
        if (now - last > longest) longest = now - last;
        last = now;
        sleep_until(now + (uint64_t)(1e9 / o->rate));
    }
    printf("{\"messages\": %ld, \"seconds\": %.6f, ", sent, (double)longest / 1e9);
    usage_json();
    printf("}\n");
}

static options read_options(int argc, char **argv) {
    options o = {.mode = argc > 1 ? argv[1] : "", .host = "127.0.0.1", .topic = "field",
                 .size = 100, .count = 1L << 60, .seconds = 1, .window = 1024, .acks = "all",
                 .compression = "none", .kind = "", .linger_ms = -1,
                 .partitions = 1, .replicas = 1, .consumers = 1};
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--host")) o.host = value;
        else if (!strcmp(name, "--port")) o.port = atoi(value);
        else if (!strcmp(name, "--topic")) o.topic = value;
        else if (!strcmp(name, "--size")) o.size = atol(value);
        else if (!strcmp(name, "--count")) o.count = atol(value);
        else if (!strcmp(name, "--seconds")) o.seconds = atof(value);
        else if (!strcmp(name, "--batch")) o.batch_bytes = atol(value);
        else if (!strcmp(name, "--linger")) o.linger_ms = atof(value);
        else if (!strcmp(name, "--window")) o.window = atol(value);
        else if (!strcmp(name, "--unbatched")) o.unbatched = atoi(value);
        else if (!strcmp(name, "--acks")) o.acks = value;
        else if (!strcmp(name, "--compression")) o.compression = value;
        else if (!strcmp(name, "--kind")) o.kind = value;
        else if (!strcmp(name, "--partitions")) o.partitions = atoi(value);
        else if (!strcmp(name, "--replicas")) o.replicas = atoi(value);
        else if (!strcmp(name, "--consumers")) o.consumers = atoi(value);
        else if (!strcmp(name, "--rate")) o.rate = atof(value);
        else if (!strcmp(name, "--tail")) o.tail = atol(value);
        else if (!strcmp(name, "--config")) {
            if (o.configs_count == CONFIGS_MAX) fail("at most %d settings", CONFIGS_MAX);
            o.configs[o.configs_count++] = value;
        } else fail("unknown option %s", name);
    }
    if (o.size > 0 && o.window > WINDOW_BYTES_MAX / o.size) o.window = WINDOW_BYTES_MAX / o.size;
    if (o.window < 1) o.window = 1;
    return o;
}

int main(int argc, char **argv) {
    options o = read_options(argc, argv);
    if (!strcmp(o.mode, "create")) {
        driver_create(&o);
        printf("{\"client\": \"%s\"}\n", driver_client());
    } else if (!strcmp(o.mode, "produce")) produce(&o);
    else if (!strcmp(o.mode, "consume")) consume(&o);
    else if (!strcmp(o.mode, "latency")) latency(&o);
    else if (!strcmp(o.mode, "pause")) pause_between(&o);
    else fail("usage: create|produce|consume|latency|pause [--option value]...");
    fflush(stdout);
    _exit(0); /* closing connections is not part of any figure */
}
