// ONNX's If, whose branches give tensors of different ranks.
func.func @main(%x: !torch.vtensor<[4],f32>, %condition: !torch.vtensor<[],i1>) -> !torch.vtensor<[],f32>
    attributes {torch.onnx_meta.opset_version = 17 : si64} {
  %either = torch.operator "onnx.If"(%condition) : (!torch.vtensor<[],i1>) -> !torch.vtensor<[],f32> {
    %same = torch.operator "onnx.Identity"(%x) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
    torch.operator_terminator %same : !torch.vtensor<[4],f32>
  }, {
    %axis = torch.operator "onnx.Constant"() {torch.onnx.value = dense<0> : tensor<1xsi64>}
        : () -> !torch.vtensor<[1],si64>
    %row = torch.operator "onnx.Unsqueeze"(%x, %axis)
        : (!torch.vtensor<[4],f32>, !torch.vtensor<[1],si64>) -> !torch.vtensor<[1,4],f32>
    torch.operator_terminator %row : !torch.vtensor<[1,4],f32>
  }
  %largest = torch.operator "onnx.ReduceMax"(%either) {torch.onnx.keepdims = 0 : si64}
      : (!torch.vtensor<[],f32>) -> !torch.vtensor<[],f32>
  return %largest : !torch.vtensor<[],f32>
}
