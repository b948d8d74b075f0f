// As prelu.mlir, where the image's width is not the number of channels.
func.func @main(%x: !torch.vtensor<[1,4,3,5],f32>, %slope: !torch.vtensor<[4],f32>) -> !torch.vtensor<[1,4,3,5],f32> {
  %y = torch.aten.prelu %x, %slope
      : !torch.vtensor<[1,4,3,5],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[1,4,3,5],f32>
  return %y : !torch.vtensor<[1,4,3,5],f32>
}
