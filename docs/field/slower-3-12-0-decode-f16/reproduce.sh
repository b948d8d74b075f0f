#!/bin/sh
# decode-f16/stock@v3 goes from 23.2 ms on IREE 3.11.0 to 31.1 ms on IREE 3.12.0 (+34.2 % [+32.6,
# +35.9]).
# Found on AMD EPYC (AuthenticAMD 26/2, znver5, AVX-512 BF16 VNNI), 2026-11-28.
#
# Run it with `sh reproduce.sh`: it installs IREE's releases with pip, into environments beside itself.
# For tools of your own give their folders, as in `BASE=$HOME/iree-build/tools HEAD=... sh reproduce.sh`.
set -e
cd "$(dirname "$0")"

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
  --iree-vm-bytecode-module-strip-source-map --iree-hal-executable-debug-level=0 \
  --iree-llvmcpu-debug-symbols=false --iree-vm-emit-polyglot-zip=true
"$BASE"/iree-benchmark-module --module=base.vmfb --device=local-sync --function=main \
  --input=8x1x128xf16=1 --input=8x4096x128xf16=1 --input=8x4096x128xf16=1 --benchmark_repetitions=3 \
  --benchmark_min_time=0.3s

echo '== IREE 3.12.0'
"$HEAD"/iree-compile model.mlir -o head.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-vm-bytecode-module-strip-source-map --iree-hal-executable-debug-level=0 \
  --iree-llvmcpu-debug-symbols=false --iree-vm-emit-polyglot-zip=true
"$HEAD"/iree-benchmark-module --module=head.vmfb --device=local-sync --function=main \
  --input=8x1x128xf16=1 --input=8x4096x128xf16=1 --input=8x4096x128xf16=1 --benchmark_repetitions=3 \
  --benchmark_min_time=0.3s

echo 'Compare the two medians of real_time above. decode-f16/stock@v3 goes from 23.2 ms on IREE 3.11.0 to
31.1 ms on IREE 3.12.0 (+34.2 % [+32.6, +35.9]). Found on AMD EPYC (AuthenticAMD 26/2, znver5,
AVX-512 BF16 VNNI), 2026-11-28.'
