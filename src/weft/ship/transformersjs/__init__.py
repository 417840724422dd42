"""Models for the JavaScript library transformers.js, in Node and in browsers."""
