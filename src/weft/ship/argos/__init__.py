"""Translators as packages of Argos Translate, which LibreTranslate uses, too."""
