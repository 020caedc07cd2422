//===- SearchableTable.td - enums and tables for programs ---------------------===//
//
// A `GenericEnum` or `GenericTable` record anywhere in td becomes an enum or a table
// of `npu_mc::tables`. Names and meaning of the fields are LLVM's.
//
//===----------------------------------------------------------------------===//

// An enum of the records of a class, with the name of this record.
class GenericEnum {
  string FilterClass; // the class
  string NameField;   // a field with the name of the variant; without it, the record's name
  string ValueField;  // a field with its number; without it, variants are counted
}

// A table with a row for each record of a class.
class GenericTable {
  string FilterClass;               // the class
  string CppTypeName;               // the name of the type of a row; without it, that of this record
  list<string> Fields;              // the columns
  list<string> PrimaryKey = [];     // the columns by which it is sorted
  string PrimaryKeyName = "";       // the function that finds a row by them
  bit PrimaryKeyReturnRange = false; // several rows may have one key
}

// One more function that finds rows of a table.
class SearchIndex {
  GenericTable Table;
  list<string> Key;
  bit ReturnRange = false;
}
