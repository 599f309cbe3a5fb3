/* The interface of a client library, so that main.c can measure all of them alike.
 *
 * Every function ends the program with a sentence on stderr if something fails: a figure of a run
 * that lost messages would be worthless. */
#ifndef FIELD_DRIVER_H
#define FIELD_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define CONFIGS_MAX 16
#define WINDOW_BYTES_MAX (32 << 20) /* JetStream refuses what exceeds its 128 MB of buffers */

typedef struct {
    const char *mode;
    const char *host;
    int port;
    const char *topic;
    long size;
    long count;           /* produce: at most; consume: exactly, for each consumer */
    double seconds;       /* produce: stop after; consume: give up after */
    long batch_bytes;     /* 0: the library's own default */
    double linger_ms;     /* wait to fill a batch; below 0: the driver's choice */
    long window;          /* messages that may wait for an acknowledgement, if we count them */
    int unbatched;        /* one message per request */
    const char *acks;
    const char *compression;
    const char *kind;     /* queue type, if a system has several */
    int partitions;
    int replicas;
    int consumers;
    double rate;          /* messages per second; 0: as fast as possible */
    long tail;            /* read only this many messages, the last ones */
    const char *configs[CONFIGS_MAX]; /* settings of the topic, NAME=VALUE */
    int configs_count;
} options;

typedef void (*on_message)(const char *data, size_t size, void *context);

void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
uint64_t now_ns(void);
int connect_tcp(const char *host, int port);

/* Name and version of the client library. */
const char *driver_client(void);
/* Create the topic, stream or queue. */
void driver_create(const options *o);

void *producer_open(const options *o);
/* Send one message; may wait for room. With `copy` the bytes may be reused at once, else never. */
void producer_send(void *producer, const char *data, size_t size, int copy);
/* Send messages held back for a batch, and read what has arrived. */
void producer_push(void *producer);
/* Return when everything is acknowledged. */
void producer_flush(void *producer);
/* Send one message and return when it is acknowledged; retry while there is no leader. Sending and
 * flushing do that if the library retries automatically. */
void producer_put(void *producer, const char *data, size_t size);

void *consumer_open(const options *o);
/* Pass on the available messages, waiting at most about 100 ms; return their number. */
long consumer_poll(void *consumer, on_message take, void *context);

#endif
