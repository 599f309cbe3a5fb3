/* What one client library has to offer, so that main.c can measure it like all the others.
 *
 * Every function ends the program with a sentence on stderr when something fails: a figure of a run
 * in which messages were lost would be worth nothing. */
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
    double seconds;       /* produce: stop then; consume: give up then */
    long batch_bytes;     /* 0: the library's own default */
    double linger_ms;     /* wait so long for more of a batch; below 0: as the driver thinks best */
    long window;          /* messages that may wait for an acknowledgement, where we count them */
    int unbatched;        /* one message per request */
    const char *acks;
    const char *compression;
    const char *kind;     /* queue type, where a system has several */
    int partitions;
    int replicas;
    int consumers;
    double rate;          /* messages a second; 0: as fast as it goes */
    long tail;            /* read only the last so many messages */
    const char *configs[CONFIGS_MAX]; /* settings of the topic, NAME=VALUE */
    int configs_count;
} options;

typedef void (*on_message)(const char *data, size_t size, void *context);

void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
uint64_t now_ns(void);
int connect_tcp(const char *host, int port);

/* Name and version of the client library. */
const char *driver_client(void);
/* Make the topic, stream or queue. */
void driver_create(const options *o);

void *producer_open(const options *o);
/* Send one message; may wait for room. The bytes may be reused at once if `copy`, else never. */
void producer_send(void *producer, const char *data, size_t size, int copy);
/* Let go what was held back to be sent together, and take what came meanwhile. */
void producer_push(void *producer);
/* Return when everything is acknowledged. */
void producer_flush(void *producer);
/* Send one message and return when it is acknowledged; try again for as long as nobody leads.
 * Sending and flushing do that where the library tries again by itself. */
void producer_put(void *producer, const char *data, size_t size);

void *consumer_open(const options *o);
/* Hand over what is there, waiting at most about 100 ms; return how many messages that was. */
long consumer_poll(void *consumer, on_message take, void *context);

#endif
