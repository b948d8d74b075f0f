"""Two compiled sides of a case: where their time goes, dispatch by dispatch, and what the compiler did differently."""
