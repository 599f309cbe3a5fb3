/* NATS JetStream through the NATS C client: asynchronous publishing, an ordered push consumer. */
#include "driver.h"

#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 100
#define DEADLINE_MS 60000
#define TAKE_MAX 100
#define PUT_WAIT_MS 250
#define PUT_TRIES_MAX 400

typedef struct {
    jsCtx *stream;
    const char *topic;
} producer_state;

const char *driver_client(void) {
    static char text[64];
    snprintf(text, sizeof text, "NATS C client %s, C", nats_GetVersion());
    return text;
}

static void check(natsStatus status, const char *what) {
    if (status != NATS_OK) fail("nats: %s: %s", what, natsStatus_GetText(status));
}

static void not_published(jsCtx *js, jsPubAckErr *error, void *context) {
    (void)js;
    (void)context;
    fail("nats: a message was not stored: %s", error->ErrText);
}

static jsCtx *open_stream(const options *o) {
    char url[128];
    natsOptions *settings;
    natsConnection *connection;
    jsCtx *js;
    jsOptions js_settings;
    snprintf(url, sizeof url, "nats://%s:%d", o->host, o->port);
    check(natsOptions_Create(&settings), "options");
    check(natsOptions_SetURL(settings, url), "address");
    check(natsOptions_SetReconnectWait(settings, 100), "reconnecting");
    if (o->rate > 0) check(natsOptions_SetSendAsap(settings, true), "send at once");
    check(natsConnection_Connect(&connection, settings), "connect");
    check(jsOptions_Init(&js_settings), "options");
    js_settings.PublishAsync.MaxPending = o->window;
    js_settings.PublishAsync.StallWait = DEADLINE_MS; /* wait for room; a syncing server is slow */
    js_settings.PublishAsync.ErrHandler = not_published;
    check(natsConnection_JetStream(&js, connection, &js_settings), "JetStream");
    return js;
}

void driver_create(const options *o) {
    jsStreamConfig config;
    jsErrCode error = 0;
    const char *subjects[] = {o->topic};
    check(jsStreamConfig_Init(&config), "stream");
    config.Name = o->topic;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Replicas = o->replicas;
    check(js_AddStream(NULL, open_stream(o), &config, NULL, &error), "create the stream");
}

void *producer_open(const options *o) {
    producer_state *p = calloc(1, sizeof *p);
    *p = (producer_state){open_stream(o), o->topic};
    return p;
}

void producer_send(void *producer, const char *data, size_t size, int copy) {
    (void)copy;
    producer_state *p = producer;
    check(js_PublishAsync(p->stream, p->topic, data, (int)size, NULL), "publish");
}

void producer_push(void *producer) { (void)producer; }

void producer_flush(void *producer) {
    jsPubOptions wait;
    jsPubOptions_Init(&wait);
    wait.MaxWait = DEADLINE_MS;
    check(js_PublishAsyncComplete(((producer_state *)producer)->stream, &wait), "flush");
}

void producer_put(void *producer, const char *data, size_t size) {
    producer_state *p = producer;
    jsPubOptions wait;
    jsPubOptions_Init(&wait);
    wait.MaxWait = PUT_WAIT_MS;
    for (int tries = 0; tries < PUT_TRIES_MAX; tries++) {
        jsErrCode error = 0;
        uint64_t before = now_ns();
        if (js_Publish(NULL, p->stream, p->topic, data, (int)size, &wait, &error) == NATS_OK) return;
        int64_t rest_ms = PUT_WAIT_MS / 10 - (int64_t)((now_ns() - before) / 1000000);
        if (rest_ms > 0) nats_Sleep(rest_ms); /* refused at once: no leader */
    }
    fail("nats: no server accepts messages");
}

void *consumer_open(const options *o) {
    natsSubscription *subscription;
    jsSubOptions wanted;
    jsErrCode error = 0;
    check(jsSubOptions_Init(&wanted), "subscribe");
    wanted.Ordered = true;
    check(js_SubscribeSync(&subscription, open_stream(o), o->topic, NULL, &wanted, &error),
          "subscribe");
    check(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
    return subscription;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    natsMsg *message;
    long count = 0;
    while (count < TAKE_MAX) {
        natsStatus status = natsSubscription_NextMsg(&message, consumer, count ? 1 : WAIT_MS);
        if (status == NATS_TIMEOUT) break;
        check(status, "next message");
        take(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message), context);
        natsMsg_Destroy(message);
        count++;
    }
    return count;
}
