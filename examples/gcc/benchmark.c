/* What a compiler has to make fast: sorting, matrices, compression and a string search, each on
 * data of a fixed pseudorandom sequence. Prints a checksum, which no flag may change. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 2463534242u;

static uint32_t next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static void sift(int32_t *a, int root, int n) {
  for (int child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && a[child + 1] > a[child]) child++;
    if (a[root] >= a[child]) return;
    int32_t t = a[root];
    a[root] = a[child];
    a[child] = t;
  }
}

static uint64_t sort(int n) {
  int32_t *a = malloc(n * sizeof *a);
  uint64_t sum = 0;
  for (int i = 0; i < n; i++) a[i] = (int32_t)next();
  for (int i = n / 2; i-- > 0;) sift(a, i, n);
  for (int i = n; i-- > 1;) {
    int32_t t = a[0];
    a[0] = a[i];
    a[i] = t;
    sift(a, 0, i);
  }
  for (int i = 0; i < n; i++) sum = sum * 31 + (uint32_t)a[i];
  free(a);
  return sum;
}

static uint64_t matrix(int n) {
  int32_t *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), *c = calloc(n * n, sizeof *c);
  uint64_t sum = 0;
  for (int i = 0; i < n * n; i++) a[i] = next() % 100, b[i] = next() % 100;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
  for (int i = 0; i < n * n; i++) sum = sum * 31 + (uint32_t)c[i];
  free(a), free(b), free(c);
  return sum;
}

/* LZ77 with a table of the last place of each three bytes; returns the length of the output. */
static uint64_t compress(int n) {
  uint8_t *in = malloc(n + 8);
  int *last = malloc(4096 * sizeof *last);
  uint64_t out = 0;
  for (int i = 0; i < n + 8; i++) in[i] = "the quick brown fox jumps over it "[(next() >> 7) % 3 ? i % 34 : next() % 34];
  for (int i = 0; i < 4096; i++) last[i] = -1;
  for (int i = 0; i < n;) {
    unsigned h = (in[i] * 2654435761u ^ in[i + 1] * 40503u ^ in[i + 2] * 2246822519u) >> 20;
    int at = last[h], length = 0;
    last[h] = i;
    if (at >= 0)
      while (length < 255 && i + length < n && in[at + length] == in[i + length]) length++;
    if (length > 3) {
      out += 3;
      i += length;
    } else {
      out++;
      i++;
    }
  }
  free(in), free(last);
  return out;
}

static uint64_t filter(int n) {
  uint8_t *in = malloc(n), *to = malloc(n);
  uint64_t sum = 0;
  for (int i = 0; i < n; i++) in[i] = (uint8_t)next();
  for (int round = 0; round < 4; round++) {
    for (int i = 2; i < n - 2; i++) to[i] = (in[i - 2] + 4 * in[i - 1] + 6 * in[i] + 4 * in[i + 1] + in[i + 2]) / 16;
    for (int i = 2; i < n - 2; i++) in[i] = to[i] > 200 ? 255 - to[i] : to[i];
  }
  for (int i = 0; i < n; i++) sum = sum * 31 + in[i];
  free(in), free(to);
  return sum;
}

int main(void) {
  uint64_t sum = sort(6000);
  sum = sum * 1000003 + matrix(72);
  sum = sum * 1000003 + compress(40000);
  sum = sum * 1000003 + filter(40000);
  printf("%016llx\n", (unsigned long long)sum);
  return 0;
}
