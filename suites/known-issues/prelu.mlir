// PyTorch's prelu has one slope for each channel, dimension 1; here the slopes are multiplied with dimension 3.
func.func @main(%x: !torch.vtensor<[1,4,3,4],f32>, %slope: !torch.vtensor<[4],f32>) -> !torch.vtensor<[1,4,3,4],f32> {
  %y = torch.aten.prelu %x, %slope
      : !torch.vtensor<[1,4,3,4],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[1,4,3,4],f32>
  return %y : !torch.vtensor<[1,4,3,4],f32>
}
