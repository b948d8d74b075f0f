#!/bin/sh
# decomposed-f32-dynamic/o3@v3 under IREE 3.11.0: iree-run-module was ended by SIGBUS.
# Found on AMD EPYC (AuthenticAMD 26/2, znver5, AVX-512 BF16 VNNI), 2026-11-29.
#
# Run it with `sh reproduce.sh`: it installs IREE's releases with pip, into environments beside itself.
# For tools of your own give their folders, as in `BASE=$HOME/iree-build/tools HEAD=... sh reproduce.sh`.
set -e
cd "$(dirname "$0")"

# Inputs with the mean and the spread of those that it was measured with, drawn anew.
"${PYTHON:-python3}" - <<'END'
import random, struct

random.seed(0)
open('input0.bin', 'wb').write(struct.pack('<131072f', *(random.gauss(0.005, 1) for _ in range(131072))))
open('input1.bin', 'wb').write(struct.pack('<131072f', *(random.gauss(-0.003, 1) for _ in range(131072))))
open('input2.bin', 'wb').write(struct.pack('<131072f', *(random.gauss(0.003, 1) for _ in range(131072))))
END

if [ -z "$BASE" ]; then
  "${PYTHON:-python3}" -m venv iree-3.3.0
  iree-3.3.0/bin/python -m pip install --quiet iree-base-compiler==3.3.0 iree-base-runtime==3.3.0
  BASE=iree-3.3.0/bin
fi

if [ -z "$HEAD" ]; then
  "${PYTHON:-python3}" -m venv iree-3.11.0
  iree-3.11.0/bin/python -m pip install --quiet iree-base-compiler==3.11.0 iree-base-runtime==3.11.0
  HEAD=iree-3.11.0/bin
fi

echo '== IREE 3.3.0'
"$BASE"/iree-compile model.mlir -o base.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-opt-level=O3 --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true
"$BASE"/iree-run-module --module=base.vmfb --device=local-sync --function=main --input=8x256x64xf32=@input0.bin \
  --input=8x256x64xf32=@input1.bin --input=8x256x64xf32=@input2.bin ||
  echo "iree-run-module ended with status $?"

echo '== IREE 3.11.0'
"$HEAD"/iree-compile model.mlir -o head.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
  --iree-opt-level=O3 --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true
"$HEAD"/iree-run-module --module=head.vmfb --device=local-sync --function=main --input=8x256x64xf32=@input0.bin \
  --input=8x256x64xf32=@input1.bin --input=8x256x64xf32=@input2.bin ||
  echo "iree-run-module ended with status $?"

echo 'Compare what iree-run-module says of the outputs above. decomposed-f32-dynamic/o3@v3 under IREE
3.11.0: iree-run-module was ended by SIGBUS. Found on AMD EPYC (AuthenticAMD 26/2, znver5, AVX-512
BF16 VNNI), 2026-11-29.'
