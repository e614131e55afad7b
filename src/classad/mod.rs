//! The ClassAd language: lexer, parser, values, compiled evaluator, functions, matchmaking.
