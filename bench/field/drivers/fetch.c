/* Reads one partition through Kafka's protocol, implemented here: messages are passed on in place
 * in the response, as stream.c does with RabbitMQ's streams.
 *
 * librdkafka makes an object of each message and passes it between threads, which costs more than a
 * broker takes to send it. This reader compares the brokers, not the libraries. The next request is
 * sent before the messages of a response are read. Checksums are not verified, neither here nor in
 * stream.c, nor by librdkafka by default. */
#include "bytes.h"
#include "numbers.h"

#define WAIT_MS 100
#define DEADLINE_MS 60000
#define FETCH_BYTES_MAX (1 << 20) /* of a partition, librdkafka's default */
#define REQUEST_BYTES 512
#define BATCH_HEAD_BYTES 61
#define BATCH_SIZE_AT 8
#define BATCH_ATTRIBUTES_AT 21
#define BATCH_LAST_DELTA_AT 23
#define BATCH_COUNT_AT 57

enum { FETCH = 1, FETCH_VERSION = 4, LIST_OFFSETS = 2, LIST_OFFSETS_VERSION = 1 };

typedef struct {
    bytes *line;
    const char *topic;
    uint64_t next;
} consumer_state;

const char *driver_client(void) { return "Kafka's protocol over a socket, C"; }

static void only_reads(void) { fail("this driver only reads"); }
void driver_create(const options *o) { (void)o, only_reads(); }
void *producer_open(const options *o) { return (void)o, only_reads(), NULL; }
void producer_send(void *p, const char *data, size_t size, int copy) {
    (void)p, (void)data, (void)size, (void)copy, only_reads();
}
void producer_push(void *p) { (void)p, only_reads(); }
void producer_flush(void *p) { (void)p, only_reads(); }

/* Start a request for the one partition; its size is put in front when it is sent. */
static char *begin(char *request, int key, int version) {
    char *at = put16(put16(request + 4, (unsigned)key), (unsigned)version);
    return put32(put_text(put32(at, 1), "field"), (uint32_t)-1); /* number, client, no replica */
}

static void finish(bytes *b, char *request, char *end) {
    put32(request, (uint32_t)(end - request - 4));
    bytes_put(b, request, (size_t)(end - request));
    bytes_send(b);
}

static void ask_for_more(consumer_state *c) {
    char request[REQUEST_BYTES], *at = begin(request, FETCH, FETCH_VERSION);
    at = put32(put32(put32(at, WAIT_MS), 1), INT32_MAX); /* at least a byte, no total limit */
    *at++ = 0;                                           /* uncommitted records, too */
    at = put32(put_text(put32(at, 1), c->topic), 1);
    at = put32(put64(put32(at, 0), c->next), FETCH_BYTES_MAX);
    finish(c->line, request, at);
}

/* Return the next response after its number, and its end. */
static const char *answer(bytes *b, const char **end) {
    for (;;) {
        size_t there = b->end - b->start;
        if (there >= 4) {
            uint32_t size = get32(b->in + b->start);
            if (there >= size + 4) {
                const char *at = b->in + b->start + 4;
                b->start += size + 4;
                *end = at + size;
                return at + 4;
            }
        }
        if (!bytes_more(b, DEADLINE_MS)) fail("kafka: no response arrived");
    }
}

static const char *skip_text(const char *at) { return at + 2 + get16(at); }

/* Return where the partition of a response starts, after its number and error. */
static const char *skip_partition(const char *at) {
    at = skip_text(at + 4) + 4 + 4; /* one topic, one partition, its number */
    if (get16(at)) fail("kafka: refused with code %u", get16(at));
    return at + 2;
}

static uint64_t end_offset(consumer_state *c) {
    char request[REQUEST_BYTES], *at = begin(request, LIST_OFFSETS, LIST_OFFSETS_VERSION);
    const char *end;
    at = put32(put_text(put32(at, 1), c->topic), 1);
    finish(c->line, request, put64(put32(at, 0), (uint64_t)-1));
    return get64(skip_partition(answer(c->line, &end)) + 8);
}

void *consumer_open(const options *o) {
    if (o->partitions != 1) fail("this driver reads one partition");
    if (strlen(o->topic) > REQUEST_BYTES / 2) fail("the topic's name is too long");
    consumer_state *c = calloc(1, sizeof *c);
    *c = (consumer_state){.line = bytes_open(o), .topic = o->topic};
    if (o->tail) {
        uint64_t end = end_offset(c);
        c->next = end < (uint64_t)o->tail ? 0 : end - (uint64_t)o->tail;
    }
    ask_for_more(c);
    return c;
}

static const char *varint(const char *at, int64_t *value) {
    uint64_t raw = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)*at++;
        raw |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return at;
}

/* Pass on messages from an offset: a batch may start before the requested one. */
static long take_batch(const char *batch, uint64_t from, on_message take, void *context) {
    const char *at = batch + BATCH_HEAD_BYTES;
    uint64_t base = get64(batch);
    uint32_t count = get32(batch + BATCH_COUNT_AT);
    long taken = 0;
    if (get16(batch + BATCH_ATTRIBUTES_AT) & 7) fail("kafka: compressed batches not requested");
    for (uint32_t i = 0; i < count; i++) {
        int64_t size, ignored, offset, length;
        at = varint(at, &size);
        const char *next = at + size;
        at = varint(varint(at + 1, &ignored), &offset); /* after the attributes: time, offset */
        at = varint(at, &length);
        at = varint(at + (length > 0 ? length : 0), &length); /* the key, then the value */
        if (base + (uint64_t)offset >= from) {
            take(at, length > 0 ? (size_t)length : 0, context);
            taken++;
        }
        at = next;
    }
    return taken;
}

/* Return the position after a batch; NULL if the batch is not complete. */
static const char *behind(const char *batch, const char *end) {
    if (end - batch < BATCH_HEAD_BYTES) return NULL;
    size_t size = BATCH_SIZE_AT + 4 + (size_t)get32(batch + BATCH_SIZE_AT);
    return (size_t)(end - batch) < size ? NULL : batch + size;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    consumer_state *c = consumer;
    const char *end, *at = skip_partition(answer(c->line, &end) + 4); /* after the throttle time */
    uint64_t from = c->next;
    long taken = 0;
    at += 8 + 8; /* two marks */
    uint32_t aborted = get32(at);
    at += 4 + (aborted == UINT32_MAX ? 0 : aborted * 16) + 4; /* and the size of what follows */
    const char *first = at, *next;
    for (; (next = behind(at, end)); at = next)
        c->next = get64(at) + get32(at + BATCH_LAST_DELTA_AT) + 1;
    ask_for_more(c);
    for (at = first; (next = behind(at, end)); at = next)
        taken += take_batch(at, from, take, context);
    return taken;
}
