// ONNX's DepthToSpace in CRD mode: the channels are taken apart in the order of the DCR mode.
func.func @main(%x: !torch.vtensor<[1,4,2,2],f32>) -> !torch.vtensor<[1,1,4,4],f32>
    attributes {torch.onnx_meta.opset_version = 17 : si64} {
  %y = torch.operator "onnx.DepthToSpace"(%x) {torch.onnx.blocksize = 2 : si64, torch.onnx.mode = "CRD"}
      : (!torch.vtensor<[1,4,2,2],f32>) -> !torch.vtensor<[1,1,4,4],f32>
  return %y : !torch.vtensor<[1,1,4,4],f32>
}
