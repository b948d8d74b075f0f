// A matrix product for IREE's local devices, loaded with --executable_plugin.
//
// The runtime looks for iree_hal_executable_plugin_query and reaches everything else through what it returns. These
// declarations are the part of that interface (version 1) that a plugin without state needs; IREE's own header is
// runtime/src/iree/hal/local/executable_plugin.h.

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t version;
  const char* name;
  const char* description;
  uint32_t features;
  int sanitizer;
  uint64_t reserved[8];
} Header;

typedef struct {
  size_t count;
  const char* const* names;  // a name that begins with ? need not be found
  void** functions;
  void** contexts;
} Imports;

typedef struct {
  const Header* header;
  uintptr_t (*load)(const void* environment, size_t count, const void* parameters, void** state);
  void (*unload)(void* state);
  uintptr_t (*resolve)(void* state, const Imports* imports, uint32_t* resolution);
} Plugin;

enum { VERSION = 1, OK = 0, NOT_FOUND = 5, MISSING_OPTIONAL = 1 };

// The operands of the call in own_product.mlir, one after the other.
typedef struct {
  const float* a;
  size_t a_offset;
  const float* b;
  size_t b_offset;
  float* c;
  size_t c_offset;
  size_t m, n, k;
} Operands;

static int product(void* operands, void* context, void* reserved) {
  (void)context, (void)reserved;
  const Operands* of = operands;
  const float* a = of->a + of->a_offset;
  const float* b = of->b + of->b_offset;
  float* c = of->c + of->c_offset;
  for (size_t i = 0; i < of->m; ++i) {
    for (size_t p = 0; p < of->k; ++p) {
      for (size_t j = 0; j < of->n; ++j) c[i * of->n + j] += a[i * of->k + p] * b[p * of->n + j];
    }
  }
  return 0;
}

static int equal(const char* one, const char* other) {
  while (*one && *one == *other) ++one, ++other;
  return *one == *other;
}

static uintptr_t load(const void* environment, size_t count, const void* parameters, void** state) {
  (void)environment, (void)count, (void)parameters;
  *state = NULL;
  return OK;
}

static void unload(void* state) { (void)state; }

static uintptr_t resolve(void* state, const Imports* imports, uint32_t* resolution) {
  (void)state;
  uintptr_t status = OK;
  *resolution = 0;
  for (size_t i = 0; i < imports->count; ++i) {
    const char* name = imports->names[i];
    int optional = *name == '?';
    if (imports->functions[i] != NULL) continue;  // another plugin has it
    if (equal(name + optional, "example_product_f32")) {
      imports->functions[i] = (void*)product;
    } else if (optional) {
      *resolution |= MISSING_OPTIONAL;
    } else {
      status = NOT_FOUND;
    }
  }
  return status;
}

const Plugin* iree_hal_executable_plugin_query(uint32_t newest_version, void* reserved) {
  (void)reserved;
  static const Header header = {.version = VERSION, .name = "example", .description = "a matrix product"};
  static const Plugin plugin = {.header = &header, .load = load, .unload = unload, .resolve = resolve};
  return newest_version >= VERSION ? &plugin : NULL;
}
