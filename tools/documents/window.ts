<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context>
    <name>Window</name>
    <message>
        <location filename="window.cpp" line="12"/>
        <source>A man plays with a dog.</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n dog(s) in the park</source>
        <translation type="unfinished"><numerusform></numerusform><numerusform></numerusform></translation>
    </message>
    <message>
        <source>The street is wet.</source>
        <translation>Die Straße ist nass.</translation>
    </message>
</context>
</TS>
