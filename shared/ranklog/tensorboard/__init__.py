"""Series as TensorBoard shows them: a data provider that an unchanged `tensorboard` asks over gRPC."""
