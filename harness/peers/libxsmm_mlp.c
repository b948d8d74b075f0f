/* The layers of a multi-layer perceptron, y = relu(x * weight + bias), in libxsmm's batch-reduce GEMM kernels.

   All matrices but the input and the result are blocked. A block of a layer's result is one call of a kernel, which sums
   over all blocks of its row; bias and ReLU follow at once, while the block is in the first-level cache.

       activations  [row block][column block][row][column]
       weights      [layer][output block][input block][input][output]; in bf16 two inputs lie side by side:
                    [layer][output block][input block][input / 2][output][2]

   Sums are in float. In bf16 a block of them stays in float for bias and ReLU and is then rounded once, to even. */

#include <libxsmm.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OF_A_BLOCK = 128 * 128 };

typedef struct {
  long layers, rows, width, row_block, block;
  int bf16;
  const char *weights;
  const float *bias; /* [layer][output], float also in bf16 */
  libxsmm_smmfunction_reducebatch_strd within, last; /* for results that are blocked, and row by row */
  libxsmm_bsmmfunction_reducebatch_strd bf16_block;
} Mlp;

const char *mlp_processor(void) {
  libxsmm_init();
  return libxsmm_get_target_arch();
}

/* NULL: libxsmm has no kernels of these sizes for this processor. Weights and bias are kept, not copied. */
Mlp *mlp_new(int bf16, long layers, long rows, long width, long row_block, long block, const char *weights,
             const float *bias) {
  const libxsmm_blasint m = (libxsmm_blasint)block, n = (libxsmm_blasint)row_block, wide = (libxsmm_blasint)width;
  const libxsmm_blasint bytes = bf16 ? 2 : 4;
  const float one = 1, zero = 0;
  Mlp made = {layers, rows, width, row_block, block, bf16, weights, bias, NULL, NULL, NULL};
  Mlp *mlp;
  if (block * row_block > MOST_OF_A_BLOCK) return NULL;
  libxsmm_init();
  /* libxsmm is column-major: its m are our columns, its n our rows. */
  if (bf16) {
    made.bf16_block = libxsmm_bsmmdispatch_reducebatch_strd(m, n, m, m * m * bytes, m * n * bytes, &m, &m, &m, &one,
                                                            &zero, NULL, NULL);
  } else {
    made.within = libxsmm_smmdispatch_reducebatch_strd(m, n, m, m * m * bytes, m * n * bytes, &m, &m, &m, &one, &zero,
                                                       NULL, NULL);
    made.last = libxsmm_smmdispatch_reducebatch_strd(m, n, m, m * m * bytes, m * n * bytes, &m, &m, &wide, &one, &zero,
                                                     NULL, NULL);
  }
  if (!made.bf16_block && !(made.within && made.last)) return NULL;
  mlp = malloc(sizeof made);
  if (mlp) *mlp = made;
  return mlp;
}

/* A value that is no number stays one. */
static inline float relu(float value) { return value < 0 ? 0 : value; }

static inline uint16_t rounded(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return value != value ? 0x7fc0 : (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void finish(float *block, long stride, const float *bias, long rows, long columns) {
  for (long row = 0; row < rows; row++, block += stride)
    for (long column = 0; column < columns; column++) block[column] = relu(block[column] + bias[column]);
}

static void finish_bf16(const float *sums, const float *bias, long rows, long columns, uint16_t *block, long stride) {
  for (long row = 0; row < rows; row++, sums += columns, block += stride)
    for (long column = 0; column < columns; column++) block[column] = rounded(relu(sums[column] + bias[column]));
}

/* One layer for the row blocks [first, end). Its weights are read once, an output block after the other. */
static void layer(const Mlp *mlp, long number, const char *from, char *to, int is_last, long first, long end) {
  const long block = mlp->block, row_block = mlp->row_block, blocks = mlp->width / block, bytes = mlp->bf16 ? 2 : 4;
  const long stride = is_last ? mlp->width : block;
  const unsigned long long count = (unsigned long long)blocks;
  float sums[MOST_OF_A_BLOCK] __attribute__((aligned(64)));
  for (long column = 0; column < blocks; column++) {
    const char *weights = mlp->weights + (number * blocks + column) * blocks * block * block * bytes;
    const float *bias = mlp->bias + number * mlp->width + column * block;
    for (long row = first; row < end; row++) {
      const char *x = from + row * row_block * mlp->width * bytes;
      const long place = row * row_block * mlp->width + column * block * (is_last ? 1 : row_block);
      if (mlp->bf16) {
        mlp->bf16_block((const libxsmm_bfloat16 *)weights, (const libxsmm_bfloat16 *)x, sums, &count);
        finish_bf16(sums, bias, row_block, block, (uint16_t *)to + place, stride);
      } else {
        (is_last ? mlp->last : mlp->within)((const float *)weights, (const float *)x, (float *)to + place, &count);
        finish((float *)to + place, stride, bias, row_block, block);
      }
    }
  }
}

/* All layers for the row blocks [first, end), of which threads take some each: no row depends on another.

   x, y: the whole input and result, row by row. work: room for two of them. */
void mlp_run(const Mlp *mlp, const char *x, char *y, char *work, long first, long end) {
  const long blocks = mlp->width / mlp->block, bytes = mlp->bf16 ? 2 : 4, piece = mlp->block * bytes;
  char *from = work, *to = work + mlp->rows * mlp->width * bytes;
  for (long row = first; row < end; row++)
    for (long column = 0; column < blocks; column++)
      for (long inner = 0; inner < mlp->row_block; inner++)
        memcpy(from + ((row * blocks + column) * mlp->row_block + inner) * piece,
               x + ((row * mlp->row_block + inner) * blocks + column) * piece, (size_t)piece);
  for (long number = 0; number < mlp->layers; number++) {
    const int is_last = number + 1 == mlp->layers;
    char *swap = from;
    layer(mlp, number, from, is_last ? y : to, is_last, first, end);
    from = to;
    to = swap;
  }
}
