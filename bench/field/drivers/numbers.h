/* Numbers and texts in the protocols' format: high byte first, a text after its length. */
#ifndef FIELD_NUMBERS_H
#define FIELD_NUMBERS_H

#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline char *put16(char *at, unsigned value) {
    uint16_t big = htons((uint16_t)value);
    return (char *)memcpy(at, &big, 2) + 2;
}

static inline char *put32(char *at, uint32_t value) {
    uint32_t big = htonl(value);
    return (char *)memcpy(at, &big, 4) + 4;
}

static inline char *put64(char *at, uint64_t value) {
    uint64_t big = htobe64(value);
    return (char *)memcpy(at, &big, 8) + 8;
}

static inline char *put_text(char *at, const char *text) {
    size_t size = strlen(text);
    at = put16(at, (unsigned)size);
    return (char *)memcpy(at, text, size) + size;
}

static inline uint32_t get32(const char *at) {
    uint32_t big;
    memcpy(&big, at, 4);
    return ntohl(big);
}

static inline unsigned get16(const char *at) { return (unsigned)(uint8_t)at[0] << 8 | (uint8_t)at[1]; }

static inline uint64_t get64(const char *at) {
    uint64_t big;
    memcpy(&big, at, 8);
    return be64toh(big);
}

#endif
