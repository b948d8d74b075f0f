#!/bin/sh
# decomposed-f32/o3@v3 under IREE 3.6.0: iree-compile exited with status 1: One or more operations
# with large vector sizes (16384 bytes) were found.
# Found on AMD EPYC (AuthenticAMD 26/2, znver5, AVX-512 BF16 VNNI), 2026-11-29.
#
# Run it with `sh reproduce.sh`: it installs IREE's releases with pip, into environments beside itself.
# For tools of your own give their folders, as in `BASE=$HOME/iree-build/tools HEAD=... sh reproduce.sh`.
set -e
cd "$(dirname "$0")"

if [ -z "$BASE" ]; then
  "${PYTHON:-python3}" -m venv iree-3.13.0
  iree-3.13.0/bin/python -m pip install --quiet iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
  BASE=iree-3.13.0/bin
fi

if [ -z "$HEAD" ]; then
  "${PYTHON:-python3}" -m venv iree-3.6.0
  iree-3.6.0/bin/python -m pip install --quiet iree-base-compiler==3.6.0 iree-base-runtime==3.6.0
  HEAD=iree-3.6.0/bin
fi

echo '== IREE 3.13.0'
"$BASE"/iree-compile model.mlir -o base.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-opt-level=O3 --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true

echo '== IREE 3.6.0'
"$HEAD"/iree-compile model.mlir -o head.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-opt-level=O3 --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true ||
  echo "iree-compile ended with status $?"

echo 'Compare what iree-compile says above. decomposed-f32/o3@v3 under IREE 3.6.0: iree-compile exited
with status 1: One or more operations with large vector sizes (16384 bytes) were found. Found on AMD
EPYC (AuthenticAMD 26/2, znver5, AVX-512 BF16 VNNI), 2026-11-29.'
