#!/bin/sh
# mlp-generated-bf16/data-tiling@v3 may have changed or not (187 ms on IREE 3.11.0, 206 ms on IREE
# 3.12.0).
# Found on AMD EPYC (AuthenticAMD 25/17, znver4, AVX-512 BF16 VNNI), 2026-11-29.
#
# Run it with `sh reproduce.sh`: it installs IREE's releases with pip, into environments beside itself.
# For tools of your own give their folders, as in `BASE=$HOME/iree-build/tools HEAD=... sh reproduce.sh`.
set -e
cd "$(dirname "$0")"

# Its weights repeat their first 512 bytes, so that they need not lie beside it.
"${PYTHON:-python3}" - <<'END'
import re

whole = lambda found: f'"0x{found[1]}{(found[2] * (int(found[3]) // 512 + 1))[: 2 * int(found[3])]}"'
short = open('model.short.mlir').read()
open('model.mlir', 'w').write(re.sub(r'"0x(\w{8})(\w{1024})[+](\d+)"', whole, short))
END

# Inputs with the mean and the spread of those that it was measured with, drawn anew.
"${PYTHON:-python3}" - <<'END'
import random, struct

random.seed(0)
open('input0.bin', 'wb').write(b''.join(struct.pack('<f', random.gauss(0.01, 1))[2:] for _ in range(32768)))
END

if [ -z "$BASE" ]; then
  "${PYTHON:-python3}" -m venv iree-3.11.0
  iree-3.11.0/bin/python -m pip install --quiet iree-base-compiler==3.11.0 iree-base-runtime==3.11.0
  BASE=iree-3.11.0/bin
fi

if [ -z "$HEAD" ]; then
  "${PYTHON:-python3}" -m venv iree-3.12.0
  iree-3.12.0/bin/python -m pip install --quiet iree-base-compiler==3.12.0 iree-base-runtime==3.12.0
  HEAD=iree-3.12.0/bin
fi

echo '== IREE 3.11.0'
"$BASE"/iree-compile model.mlir -o base.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-opt-data-tiling --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true

echo '== IREE 3.12.0'
"$HEAD"/iree-compile model.mlir -o head.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-opt-data-tiling --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true

# In turns, each time in a process of its own, so that a busy minute meets both.
for turn in 1 2 3; do
  echo '== IREE 3.11.0'
  "$BASE"/iree-benchmark-module --module=base.vmfb --device=local-sync --function=main \
    --input=32x1024xbf16=@input0.bin --benchmark_repetitions=3 --benchmark_min_time=0.3s
  echo '== IREE 3.12.0'
  "$HEAD"/iree-benchmark-module --module=head.vmfb --device=local-sync --function=main \
    --input=32x1024xbf16=@input0.bin --benchmark_repetitions=3 --benchmark_min_time=0.3s
done

echo 'Compare the medians of real_time above. mlp-generated-bf16/data-tiling@v3 may have changed or not
(187 ms on IREE 3.11.0, 206 ms on IREE 3.12.0). Found on AMD EPYC (AuthenticAMD 25/17, znver4,
AVX-512 BF16 VNNI), 2026-11-29.'
