// A matrix product for IREE's local devices, loaded with --executable_plugin.
//
// The runtime looks for iree_hal_executable_plugin_query and reaches everything else through what it returns. These
// declarations are the part of that interface (version 1) that a plugin without state needs; IREE's own header is
// runtime/src/iree/hal/local/executable_plugin.h.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

// The operands of the call in own_product.mlir, one after the other, each as MLIR hands a matrix on.
typedef struct {
  float* allocated;
  float* aligned;
  size_t offset, sizes[2], strides[2];
} Matrix;

static int product(void* operands, void* context, void* reserved) {
  (void)context, (void)reserved;
  const Matrix *a = operands, *b = a + 1, *c = a + 2;
  for (size_t i = 0; i < c->sizes[0]; ++i) {
    for (size_t p = 0; p < a->sizes[1]; ++p) {
      float factor = a->aligned[a->offset + i * a->strides[0] + p];
      const float* from = b->aligned + b->offset + p * b->strides[0];
      float* to = c->aligned + c->offset + i * c->strides[0];
      for (size_t j = 0; j < c->sizes[1]; ++j) to[j] += factor * from[j];
    }
  }
  return 0;
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
    if (strcmp(name + optional, "example_product_f32") == 0) {
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
