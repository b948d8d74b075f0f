#!/bin/sh
# block-f32/o3@host under IREE 3.13.0: iree-compile exited with status 1: 'func.func' op exceeded
# stack allocation limit of 32768 bytes for function. Got 41152 bytes.
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

if [ -z "$HEAD" ]; then
  "${PYTHON:-python3}" -m venv iree-3.13.0
  iree-3.13.0/bin/python -m pip install --quiet iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
  HEAD=iree-3.13.0/bin
fi

echo '== IREE 3.13.0'
"$HEAD"/iree-compile model.mlir -o head.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host \
  --iree-opt-level=O3 --iree-vm-bytecode-module-strip-source-map \
  --iree-hal-executable-debug-level=0 --iree-llvmcpu-debug-symbols=false \
  --iree-vm-emit-polyglot-zip=true ||
  echo "iree-compile ended with status $?"

echo 'Compare what iree-compile says above. block-f32/o3@host under IREE 3.13.0: iree-compile exited with
status 1: '"'"'func.func'"'"' op exceeded stack allocation limit of 32768 bytes for function. Got 41152
bytes. Found on AMD EPYC (AuthenticAMD 25/17, znver4, AVX-512 BF16 VNNI), 2026-11-29.'
